"""One line of progress on standard error, rewritten in place, and only when a person is watching a terminal."""

import sys
import time


class Progress:
    """Counts work and shows it: ``with Progress("encode") as progress: progress.advance(1000)``."""

    def __init__(self, label: str, unit: str = "lines", interval: float = 0.5) -> None:
        self.label, self.unit, self.interval = label, unit, interval
        self.done = 0
        self._visible = sys.stderr.isatty()
        self._start = self._shown = time.monotonic()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._visible:
            # Blank the line, so that the result that follows stands alone.
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()

    def advance(self, amount: int = 1) -> None:
        self.done += amount
        if not self._visible:
            return
        now = time.monotonic()
        if now - self._shown >= self.interval:
            self._shown = now
            rate = self.done / (now - self._start)
            sys.stderr.write(f"\r\x1b[K{self.label}: {self.done:,} {self.unit} ({rate:,.0f} a second)")
            sys.stderr.flush()

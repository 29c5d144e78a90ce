"""Shows a training run's progress: reads fairseq-train's log (``--log-format json``), prints what a person follows.

Usage: fairseq-train ... --log-format json 2>&1 | tee train.log | python training_progress.py MAX_UPDATE
"""

import json
import re
import sys
import time

_STATISTICS = re.compile(r"\| INFO \| (train_inner|valid) \| (\{.*\})\s*$")
# Lines that are worth reading as they are.
_REMARKS = re.compile(r"\| INFO \| fairseq\.trainer \| Loaded checkpoint (.*)|\| INFO \| \S+ \| (.* left out: .*)")


def duration(seconds: float) -> str:
    minutes, seconds = divmod(round(seconds), 60)
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


def main() -> None:
    last = int(sys.argv[1])
    first: tuple[int, float] | None = None
    for line in sys.stdin:
        if found := _STATISTICS.search(line):
            kind, values = found[1], json.loads(found[2])
            if kind == "valid":
                update, perplexity = int(values["valid_num_updates"]), float(values["valid_ppl"])
                print(f"  update {update:>6,} of {last:,}: validation perplexity {perplexity:.2f}", flush=True)
                continue
            update, now = int(values["num_updates"]), time.monotonic()
            first = first or (update, now)
            text = f"  update {update:>6,} of {last:,}: training perplexity {float(values['ppl']):.2f}"
            text += f", {float(values['wps']):,.0f} target tokens a second"
            if update > first[0]:
                text += f", {duration((now - first[1]) / (update - first[0]) * (last - update))} to go"
            print(text, flush=True)
        elif found := _REMARKS.search(line):
            print(f"  {found[2] or 'going on from ' + found[1]}", flush=True)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        # The recipe says what an interruption means.
        sys.exit(130)

"""Commands written in pages of Markdown, and running them as a reader would."""

import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path

_BLOCK = re.compile(r"^```(bash|console|python)\n(.*?)^```", re.MULTILINE | re.DOTALL)


@dataclass
class Command:
    """One line of a block; in a ``console`` block, what comes after ``$ `` with the lines that it prints.

    In those, ``...`` stands for any part of a line.
    """

    line: str
    may_fail: bool
    prints: list[str]

    @property
    def is_refused(self) -> bool:
        """Whether the page shows the sentence of an error."""
        return any(re.match(r"(fairseq-[a-z]+: error|vaswani [a-z]+): ", line) for line in self.prints)


def section(page: str, heading: str) -> str:
    found = re.search(rf"^## {re.escape(heading)}$(.*?)(?=^## |\Z)", page, re.MULTILINE | re.DOTALL)
    assert found is not None, f"there is no section {heading}"
    return found.group(1)


def commands(page: str) -> list[Command]:
    """Those of all blocks, in order. A ``bash`` block must succeed; a ``console`` block shows what is printed.

    The page's lines of Python are one program, which is run where the last of them stand.
    """
    blocks = _BLOCK.findall(page)
    last = max((number for number, (kind, _) in enumerate(blocks) if kind == "python"), default=None)
    found: list[Command] = []
    for number, (kind, block) in enumerate(blocks):
        if kind == "python":
            if number == last:
                program = "".join(text for language, text in blocks if language == "python")
                found.append(Command(f"python - <<'END OF PROGRAM'\n{program}END OF PROGRAM", False, []))
            continue
        for line in block.strip().split("\n"):
            if kind == "bash":
                found.append(Command(line, False, []))
            elif line.startswith("$ "):
                found.append(Command(line[2:], True, []))
            else:
                found[-1].prints.append(line)
    return found


def run_all(listed: list[Command], folder: Path, environment: "dict[str, str]") -> list[str]:
    """Run the commands in one shell, one after another in ``folder``; return what each printed.

    Fails where a command ends with a status that the page does not show, or prints other lines than it shows; an error
    that the page shows must come without a traceback.
    """
    outputs = [folder / f".output-{number}" for number in range(len(listed))]
    script = ["set -uo pipefail"]
    for command, output in zip(listed, outputs):
        stop = f"{{ cat {shlex.quote(str(output))}; exit 1; }}"
        # A console block may show a command that ends badly; that it prints what the block shows is looked at below.
        end = f"&& {stop}" if command.is_refused else "|| true" if command.may_fail else f"|| {stop}"
        script.append(f"{{ {command.line}\n}} > {shlex.quote(str(output))} 2>&1 {end}")
    script.append("true")
    done = subprocess.run(
        ["bash", "-c", "\n".join(script)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr
    texts = [output.read_text("utf-8") for output in outputs]
    for command, text in zip(listed, texts):
        assert not (command.is_refused and "Traceback" in text), f"{command.line} ends in\n{text[-4000:]}"
        for line in command.prints:
            pieces = ".*".join(map(re.escape, line.split("...")))
            assert re.search(pieces, text), f"{command.line} does not print {line!r} but\n{text[-2000:]}"
    return texts

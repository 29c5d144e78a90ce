"""The scripts of a WMT14 recipe as a user starts them, with small numbers."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples"
VOCABULARY = 420
PREPARE = ["download", "text", "clean", "vocabulary", "encode", "binarise"]


@dataclass
class Recipe:
    pair: str
    work: Path
    mirror: str
    environment: "dict[str, str]"

    def command(self, script: str, *words: str, **environment: str) -> "tuple[list[str], dict[str, str]]":
        settings = {"WMT14_MIRROR": self.mirror, "WORK": str(self.work), "VOCAB_SIZE": str(VOCABULARY)}
        settings |= {"ARCH": "vaswani_tiny", "MAX_UPDATE": "6", **environment}
        clean = {name: value for name, value in self.environment.items() if name not in ("WORLD_SIZE", "RANK")}
        return ["bash", str(EXAMPLES / self.pair / script), *words], {**clean, **settings}

    def run(self, script: str, *words: str, status: int = 0, **environment: str) -> "subprocess.CompletedProcess[str]":
        command, settings = self.command(script, *words, **environment)
        done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == status, done.stdout[-4000:] + done.stderr[-4000:]
        assert "Traceback" not in done.stderr
        return done

    def lines(self, name: str) -> "list[str]":
        content = (self.work / name).read_bytes().decode("utf-8", "surrogateescape")
        assert content.endswith("\n")
        return content[:-1].split("\n")


def steps(output: str) -> "dict[str, str]":
    """What each step said of itself, "done" for one that was skipped."""
    found = re.findall(r"^\w+: ([\w-]+): (done before|.* in all)$", output, re.MULTILINE)
    return {name: "done" if said == "done before" else "run" for name, said in found}

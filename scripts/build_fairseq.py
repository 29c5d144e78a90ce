"""Build fairseq 0.12.2 so that it runs on today's Python, and keep the wheel in a cache.

    pip install "$(python scripts/build_fairseq.py)"

The last line on stdout is the path of the wheel; progress goes to stderr. The published source is fetched with pip,
its SHA-256 is checked before anything in it runs, the named edits of fairseq_edits/ are applied, and pip builds the
wheel. Needs Python 3.10 to 3.13 with pip, its headers and a C++ compiler; nothing else has to be installed.
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from pathlib import Path

from fairseq_edits import MENDS, ROBUSTNESS, SPEED, EditError, apply_edits
from fairseq_edits.packaging import VERSION

SDIST_VERSION = "0.12.2"
SDIST_NAME = f"fairseq-{SDIST_VERSION}.tar.gz"
SDIST_SHA256 = "34f1b18426bf3844714534162f065ab733e049597476daa35fffb4d06a92b524"


class BuildError(Exception):
    """The wheel cannot be built; the message is one sentence that says why and what to do."""


def say(message: str) -> None:
    """Report progress on stderr."""
    print(f"build_fairseq: {message}", file=sys.stderr, flush=True)


def run_pip(arguments: "list[str]", what: str) -> None:
    """Run this Python's pip quietly; its output is shown only when it fails, and then BuildError is raised."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        raise BuildError(f"pip could not {what} (its messages stand above)")


def compiler_command() -> str:
    """The C++ compiler that setuptools will call: $CXX, else what this Python was built with, else c++."""
    configured = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    return configured.split()[0]


def check_toolchain() -> None:
    """Raise BuildError with one sentence that names everything missing: compiler, headers, Python version."""
    if not (3, 10) <= sys.version_info[:2] <= (3, 13):
        raise BuildError(f"Python 3.10 to 3.13 is needed, but {sys.executable} is {sys.version.split()[0]}")
    missing = []
    if shutil.which(compiler_command()) is None:
        missing.append(f"a C++ compiler ({compiler_command()}; on Debian or Ubuntu: apt install g++)")
    if not Path(sysconfig.get_paths()["include"], "Python.h").is_file():
        package = f"python3.{sys.version_info.minor}-dev"
        missing.append(f"the headers of {sys.executable} (Python.h; on Debian or Ubuntu: apt install {package})")
    if missing:
        raise BuildError("fairseq's extensions cannot be compiled: missing " + " and ".join(missing))


def sha256(path: Path) -> str:
    """Hex digest of the file at ``path``."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(1 << 20), b""):
            digest.update(block)
    return digest.hexdigest()


def check_sdist(path: Path) -> None:
    """Raise BuildError unless the file at ``path`` is the pinned source package."""
    found = sha256(path)
    if found != SDIST_SHA256:
        raise BuildError(f"{path.name} has SHA-256 {found} instead of {SDIST_SHA256}, so it was not used")


def download_sdist(folder: Path) -> Path:
    """Fetch the pinned source package with pip, so that the user's index and proxy settings hold."""
    requirements = folder / "requirements.txt"
    requirements.write_text(f"fairseq=={SDIST_VERSION} --hash=sha256:{SDIST_SHA256}\n", encoding="utf-8")
    # pip compares the hash before it runs the package's setup.py for its metadata.
    arguments = ["download", "--quiet", "--require-hashes", "--no-deps", "--no-binary", "fairseq"]
    run_pip([*arguments, "--dest", str(folder), "--requirement", str(requirements)], f"download {SDIST_NAME}")
    sdist = folder / SDIST_NAME
    if not sdist.is_file():
        raise BuildError(f"pip downloaded no {SDIST_NAME}")
    check_sdist(sdist)
    return sdist


def unpack(sdist: Path, folder: Path) -> Path:
    """Unpack ``sdist`` below ``folder`` and return its one top folder.

    Only plain files and folders inside that top folder are accepted; anything else raises BuildError.
    """
    tops = set()
    with tarfile.open(sdist, "r:gz") as archive:
        for member in archive:
            parts = Path(member.name).parts
            if not (member.isfile() or member.isdir()) or Path(member.name).is_absolute() or ".." in parts or not parts:
                raise BuildError(f"{sdist.name} holds {member.name!r}, which is not a plain file inside its folder")
            tops.add(parts[0])
            target = folder.joinpath(*parts)
            if member.isdir():
                target.mkdir(parents=True, exist_ok=True)
                continue
            target.parent.mkdir(parents=True, exist_ok=True)
            content = archive.extractfile(member)
            assert content is not None
            with target.open("wb") as file:
                shutil.copyfileobj(content, file)
    if len(tops) != 1:
        raise BuildError(f"{sdist.name} holds {len(tops)} top folders instead of one")
    return folder / tops.pop()


def cache_folder() -> Path:
    """Where wheels are kept: below $XDG_CACHE_HOME or ~/.cache, one folder per source, edits, Python and platform."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    root = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
    digest = hashlib.sha256(SDIST_SHA256.encode())
    edits = Path(__file__).resolve().parent / "fairseq_edits"
    for path in sorted(edits.rglob("*.py")):
        digest.update(path.relative_to(edits).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    tag = f"{sys.implementation.cache_tag}-{sysconfig.get_platform()}"
    return root / "vaswani" / "fairseq" / f"{tag}-{digest.hexdigest()[:16]}"


def find_wheel(folder: Path) -> "Path | None":
    """The finished wheel in ``folder``, if there is one."""
    wheels = sorted(folder.glob(f"fairseq-{VERSION}-*.whl"))
    return wheels[0] if wheels else None


def build_wheel(folder: Path) -> Path:
    """Build the wheel and put it into ``folder`` in one step, so that no half-written wheel is ever found there."""
    check_toolchain()
    with tempfile.TemporaryDirectory(prefix="build_fairseq-") as scratch:
        work = Path(scratch)
        say(f"downloading {SDIST_NAME}")
        sdist = download_sdist(work)
        say(f"applying {len(MENDS)} mends, {len(ROBUSTNESS)} edits for robustness and {len(SPEED)} for speed")
        source = unpack(sdist, work / "source")
        apply_edits([*MENDS, *ROBUSTNESS, *SPEED], source)
        say("compiling (about a minute)")
        built = work / "wheel"
        run_pip(["wheel", "--quiet", "--no-deps", "--wheel-dir", str(built), str(source)], "build the wheel")
        wheel = find_wheel(built)
        if wheel is None:
            raise BuildError(f"pip built no wheel of version {VERSION}")
        return keep(wheel, folder)


def keep(wheel: Path, folder: Path) -> Path:
    """Copy ``wheel`` into ``folder`` under a passing name, then rename it."""
    folder.mkdir(parents=True, exist_ok=True)
    handle, passing = tempfile.mkstemp(dir=folder, prefix=".passing-")
    os.close(handle)
    try:
        shutil.copyfile(wheel, passing)
        os.chmod(passing, 0o644)
        os.replace(passing, folder / wheel.name)
    except BaseException:
        os.unlink(passing)
        raise
    return folder / wheel.name


def main() -> int:
    """Print the wheel's path; status 1 and one sentence on stderr when there is none."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--wheel-dir", type=Path, metavar="DIR", help="also copy the wheel into DIR and print that path"
    )
    options = parser.parse_args()
    try:
        folder = cache_folder()
        wheel = find_wheel(folder) or build_wheel(folder)
        if options.wheel_dir is not None:
            wheel = keep(wheel, options.wheel_dir)
    except (BuildError, EditError, OSError) as error:
        say(f"error: {error}")
        return 1
    print(wheel)
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""What a built package has beside its modules."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_package_is_typed_and_has_its_configurations(tmp_path: Path) -> None:
    build = ("build", "--build-base", tmp_path / "base", "build_py", "--build-lib", tmp_path / "library")
    # egg_info belongs to the checkout's environment.
    command = [sys.executable, "setup.py", "-q", "egg_info", "--egg-base", tmp_path, *build]
    subprocess.run(list(map(str, command)), cwd=ROOT, check=True, capture_output=True)
    built = tmp_path / "library"
    for source in (ROOT / "vaswani_plugin").rglob("*"):
        if source.suffix in (".py", ".yaml", ".typed"):
            assert (built / source.relative_to(ROOT)).read_bytes() == source.read_bytes()
    assert (built / "vaswani_plugin" / "py.typed").exists()
    assert len(list(built.rglob("*.yaml"))) >= 5

"""Runs of pytest in copies of the project, each in a process of its own that has fairseq imported already.

Reads a line of JSON for each run, {"copy": folder, "targets": [names inside its tests/]}, and prints an empty line
when it is over. Leaves in the copy output.txt, what pytest printed, and outcome.json: pytest's exit status, the failed
tests with the kinds of their exceptions, and the files of the plugin that were imported.
"""

import json
import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Any

import fairseq.tasks.translation  # noqa: F401  (takes seconds)
import pytest

_LONGEST_SECONDS = 600


class Recorder:
    def __init__(self) -> None:
        self.failed: dict[str, str] = {}

    def pytest_runtest_makereport(self, item: pytest.Item, call: "pytest.CallInfo[Any]") -> None:
        if call.when == "call" and call.excinfo is not None and not call.excinfo.errisinstance(pytest.skip.Exception):
            self.failed[item.nodeid] = call.excinfo.typename


def run(copy: str, targets: "list[str]") -> None:
    os.chdir(copy)
    os.environ["PYTHONPATH"] = copy
    # Others' plugins of pytest take longer to import than most of the tests to run.
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.path.insert(0, copy)
    output = os.open("output.txt", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    recorder = Recorder()
    status = pytest.main(["-x", "--long", *(f"tests/{target}" for target in targets)], plugins=[recorder])
    files = [getattr(module, "__file__", None) for name, module in sys.modules.items() if is_plugins(name)]
    imported = sorted(str(Path(file).resolve()) for file in files if file is not None)
    Path("outcome.json").write_text(json.dumps({"status": status, "failed": recorder.failed, "imported": imported}))


def is_plugins(module: str) -> bool:
    return module.split(".")[0] == "vaswani_plugin"


def main() -> None:
    assert not any(map(is_plugins, sys.modules)), "the copies' own package could not be imported any more"
    sys.path.pop(0)  # this folder, of the project itself
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            signal.alarm(_LONGEST_SECONDS)
            try:
                run(**json.loads(line))
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(0)
        os.waitpid(child, 0)
        print(flush=True)


if __name__ == "__main__":
    main()

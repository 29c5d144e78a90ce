"""The tests themselves: every one of them compares something or expects an error."""

import ast
from functools import cache
from pathlib import Path
from typing import Union

TESTS = Path(__file__).parents[1]
Function = Union[ast.FunctionDef, ast.AsyncFunctionDef]
# pytest.raises and its kin; torch.testing.assert_close and numpy.testing.assert_allclose begin with "assert".
_EXPECTING = {"raises", "warns", "fail"}


@cache
def module(path: Path) -> "Module":
    return Module(path)


class Module:
    """The functions of one file of the tests, methods included, and the other such files that it imports from."""

    def __init__(self, path: Path) -> None:
        tree = ast.parse(path.read_text("utf-8"))
        self.path = path
        self.functions = [node for node in ast.walk(tree) if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        imports = [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        files = [folder / f"{name}.py" for folder in (path.parent, TESTS) for name in (*imports, "conftest")]
        self.imported = [file for file in files if file.exists() and file != path]

    def tests_that_assert_nothing(self) -> list[str]:
        named = [function for function in self.functions if function.name.startswith("test")]
        return [function.name for function in named if not self.asserts(function)]

    def asserts(self, function: Function, depth: int = 5) -> bool:
        """Whether a function asserts, itself or through others of the tests."""
        for node in ast.walk(function):
            if isinstance(node, ast.Assert) and not isinstance(node.test, ast.Constant):
                return True
            if not isinstance(node, ast.Call):
                continue
            name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            if name.startswith("assert") or name in _EXPECTING or (depth > 0 and self._called_asserts(name, depth)):
                return True
        return False

    def _called_asserts(self, name: str, depth: int) -> bool:
        for place in (self, *map(module, self.imported)):
            found = [function for function in place.functions if function.name == name]
            if found:
                return any(place.asserts(function, depth - 1) for function in found)
        return False


def test_every_test_asserts_something() -> None:
    found = {
        str(path.relative_to(TESTS)): module(path).tests_that_assert_nothing() for path in TESTS.rglob("test_*.py")
    }
    assert {path: names for path, names in found.items() if names} == {}


def test_one_that_only_runs_is_found(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "import pytest\nfrom steps import Checks\n"
        "def run(): return 1\n"
        "def test_only_runs(): run()\n"
        "def test_only_calls(): print('fine'); run().mean()\n"
        "def test_asserts_what_is_always_true(): assert True\n"
        "def test_compares(): assert run() == 1\n"
        "def test_expects():\n    with pytest.raises(ValueError): run()\n"
        "def test_asks_another(): Checks().check(run())\n"
        "def test_asks_a_fixture_of_the_folder(corpus): corpus.train()\n"
    )
    (tmp_path / "steps.py").write_text("class Checks:\n    def check(self, x): assert x == 1\n")
    (tmp_path / "conftest.py").write_text("class Corpus:\n    def train(self): assert self.run() == 0\n")
    found = Module(tmp_path / "test_it.py").tests_that_assert_nothing()
    assert found == ["test_only_runs", "test_only_calls", "test_asserts_what_is_always_true"]

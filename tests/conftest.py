"""What holds for all tests: those that take minutes run on request only; none sees what another has set."""

import logging
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

LONG = "long: bash scripts/test.sh --long"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--long", action="store_true", help="run the tests that take minutes too")


def pytest_configure(config: pytest.Config) -> None:
    """Properties of any text: the same examples every time, or with --long many more and other ones each time."""
    common = settings(database=None, deadline=None, suppress_health_check=list(HealthCheck))
    settings.register_profile("ordinary", common, max_examples=60, derandomize=True)
    settings.register_profile("long", common, max_examples=1000, print_blob=True)
    settings.load_profile("long" if config.getoption("--long") else "ordinary")


def pytest_collection_modifyitems(config: pytest.Config, items: "list[pytest.Item]") -> None:
    if config.getoption("--long"):
        return
    for item in items:
        if "long" in item.keywords:
            item.add_marker(pytest.mark.skip(reason=LONG))


def pytest_sessionstart(session: pytest.Session) -> None:
    # A shell's background job ignores interrupts, and so would the commands whose interruption is tested.
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _restore_logs() -> None:
    for name in ("fairseq", "vaswani_plugin"):
        logging.getLogger(name).setLevel(logging.NOTSET)


@pytest.fixture(autouse=True)
def _logs_as_before() -> "Iterator[None]":
    """Commands that run in the tests' own process silence the progress of fairseq and of this package."""
    _restore_logs()  # a fixture of the module or session may have run such a command
    yield
    _restore_logs()

"""A configuration for hydra names no code: looked at before hydra makes callbacks and log handlers of it."""

import argparse
import os
from typing import Any, Iterator, List, Tuple

from fairseq.user_error import UserError
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.utils import create_config_search_path
from hydra.core.config_search_path import SearchPathQuery
from hydra.core.utils import setup_globals
from hydra.types import RunMode
from omegaconf import DictConfig, ListConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

# What hydra and its plugins make objects of, and the handlers that a log is written with.
_TARGETS = ("hydra._internal.core_plugins.", "hydra.experimental.callbacks.", "hydra_plugins.")
_LOGGING = (
    *("logging.StreamHandler", "logging.FileHandler", "logging.NullHandler", "logging.Formatter"),
    *("logging.handlers.RotatingFileHandler", "logging.handlers.TimedRotatingFileHandler"),
    "colorlog.ColoredFormatter",
)
_STREAMS = ("ext://sys.stdout", "ext://sys.stderr")


def check_configuration(arguments: argparse.Namespace, main_folder: str, packaged: str) -> None:
    """Compose what hydra's parsed ``arguments`` ask for, and raise UserError where it names code.

    ``main_folder`` is what a relative --config-path starts from, ``packaged`` the folder without one.
    """
    if arguments.experimental_rerun is not None:
        raise UserError(
            "--experimental-rerun reads a pickle, which could run code; give the configuration and its overrides again"
        )
    given = arguments.config_path
    if given is None:
        folder = packaged
    else:
        folder = given if given.startswith("pkg://") else os.path.abspath(os.path.join(main_folder, given))
    search_path = create_config_search_path(folder)
    if arguments.config_dir is not None:
        search_path.prepend(
            "command-line", f"file://{os.path.abspath(arguments.config_dir)}", SearchPathQuery(provider="schema")
        )
    setup_globals()
    try:
        config = ConfigLoaderImpl(search_path).load_configuration(
            arguments.config_name or "config",
            arguments.overrides,
            RunMode.MULTIRUN if arguments.multirun else RunMode.RUN,
            validate_sweep_overrides=False,
        )
    except Exception:
        return  # hydra fails in the same way, and tells it
    for path, value in _leaves(config.hydra, "hydra"):
        if _is_code(path, value):
            raise UserError(
                f"the configuration has {'.'.join(path)}: {value!r}, which names code to run; remove it, or call that "
                "code from a plugin's folder (common.user_dir)"
            )


def _leaves(node: Any, *path: str) -> "Iterator[Tuple[Tuple[str, ...], Any]]":
    names: List[Any] = list(node) if isinstance(node, DictConfig) else list(range(len(node)))
    for name in names:
        here = (*path, str(name))
        if OmegaConf.is_missing(node, name):
            continue
        try:
            value = node[name]
        except OmegaConfBaseException:  # what only a run in progress can tell
            value = f"{node._get_node(name)}"
        if isinstance(value, (DictConfig, ListConfig)):
            yield from _leaves(value, *here)
        else:
            yield here, value


def _is_code(path: "Tuple[str, ...]", value: Any) -> bool:
    if path[-1] == "_target_":
        return not str(value).startswith(_TARGETS)
    if path[1] not in ("job_logging", "hydra_logging"):
        return False
    if path[-1] in ("()", "class", "queue", "listener"):
        return value not in _LOGGING
    text = str(value)
    return text.startswith(("ext://", "cfg://")) and text not in _STREAMS

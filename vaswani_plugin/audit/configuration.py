"""The settings of a fairseq training, from wherever they stand."""

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn, Optional

from vaswani_plugin.errors import UserError

# What older checkpoints, whose settings are one flat list, call the parts.
_NAMES = {"model": "arch"}
_LARGEST = 1e15


class Configuration:
    """fairseq's settings by part and name. They may come from a stranger's file, so each is looked at when taken.

    Args:
        origin: what an error names, such as the checkpoint's file.
        parts: "model", "task", "optimization" and the others, each a mapping or an argparse.Namespace; or all
            settings in one such, as checkpoints before fairseq 0.10 have them.
    """

    def __init__(self, origin: str, parts: Any) -> None:
        self.origin = origin
        self._all = _mapping(parts)
        self._is_flat = not isinstance(self._all.get("optimization"), (Mapping, Namespace))
        if self._is_flat and "arch" not in self._all:
            raise UserError(f"{origin} does not say with what settings it was trained: it is not fairseq's")

    def value(self, part: str, name: str, default: Any = None) -> Any:
        """A setting, or the default where it is absent."""
        if self._is_flat:
            return self._all.get(_NAMES.get(part, part) if name == "_name" else name, default)
        return _mapping(self._all.get(part)).get(name, default)

    def name(self, part: str) -> str:
        """Which model, task, criterion, optimizer or lr_scheduler it is; "" for none."""
        return self.text(part, "_name")

    def text(self, part: str, name: str, default: str = "") -> str:
        """Fit to be printed, whoever has written it."""
        shown = str(self.value(part, name) or default)[:60]
        return "".join(character if character.isprintable() else "?" for character in shown)

    def number(self, part: str, name: str, default: Optional[float] = None) -> Any:
        """An int or a float.

        Raises:
            ValueError: the setting is absent and has no default, or is no number that a setting can be.
        """
        value = self.value(part, name)
        if value is None and default is not None:
            return default
        if isinstance(value, str):
            try:
                value = float(value)
            except ValueError:
                self._refuse(part, name, value)
        if not _is_number(value):
            self._refuse(part, name, value)
        return value

    def numbers(self, part: str, name: str) -> list[float]:
        """The numbers of a list such as --update-freq, or of its text, such as "(0.9, 0.98)"."""
        value = self.value(part, name)
        entries = value.strip("()[] ").split(",") if isinstance(value, str) else value
        if not isinstance(entries, (list, tuple)):
            entries = [value]
        try:
            found = [float(entry) for entry in entries]
        except (TypeError, ValueError, OverflowError):
            found = []
        if not found or not all(map(_is_number, found)):
            self._refuse(part, name, value)
        return found

    def flag(self, part: str, name: str) -> bool:
        return bool(self.value(part, name, False))

    def has(self, part: str, *names: str) -> bool:
        return all(self.value(part, name) is not None for name in names)

    def _refuse(self, part: str, name: str, value: Any) -> NoReturn:
        shown = repr(value)[:60]
        raise UserError(f"{self.origin}: its setting {part}.{name} is {shown}, which no training can have")


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < _LARGEST


def _mapping(part: Any) -> Mapping[str, Any]:
    if isinstance(part, Namespace):
        return vars(part)
    return part if isinstance(part, Mapping) else {}


def from_arguments(arguments: Sequence[str]) -> Configuration:
    """What fairseq-train would train with.

    Raises:
        ValueError: arguments that fairseq-train refuses.
    """
    from fairseq import options
    from fairseq.dataclass.utils import convert_namespace_to_omegaconf

    parser: Any = options.get_training_parser()
    parser.error = _refuse_arguments
    try:
        parsed = options.parse_args_and_arch(parser, input_args=_without_this_plugin(arguments))
        return from_fairseq("the arguments", convert_namespace_to_omegaconf(parsed))
    except UserError:
        raise
    except Exception as error:  # fairseq evaluates some arguments as Python, and checks others nowhere
        _refuse_arguments(str(error))


def from_fairseq(origin: str, config: Any) -> Configuration:
    """From the configuration that fairseq itself works with."""
    from omegaconf import OmegaConf

    return Configuration(origin, OmegaConf.to_container(config, resolve=True, enum_to_str=True))


def _without_this_plugin(arguments: Sequence[str]) -> list[str]:
    """The plugin is imported already, perhaps from another place than --user-dir names."""
    parser = ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--user-dir", default="")
    known, others = parser.parse_known_args(list(arguments))
    if not known.user_dir or known.user_dir.rstrip("/").endswith("vaswani_plugin"):
        return others
    return list(arguments)


def _refuse_arguments(message: str) -> NoReturn:
    # The names of all architectures are two pages.
    raise UserError(f"fairseq-train refuses the arguments: {message.split(' (choose from ')[0]}")

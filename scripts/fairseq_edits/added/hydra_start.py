"""What fairseq-hydra-train does before hydra composes a configuration.

The plugin of common.user_dir is imported, so that hydra finds its models, tasks and criterions; and the primary
configuration gets fairseq's own as its schema in the way of hydra 1.1+ (an entry of its defaults list).
"""

import argparse
import os
from typing import List, Optional

from fairseq.user_error import UserError
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict

SCHEMA = "fairseq_schema"
_USER_DIR = "common.user_dir"


def find_primary_config(arguments: argparse.Namespace, main_folder: str) -> Optional[str]:
    """Path of the YAML file that hydra's parsed ``arguments`` name, None when it is the packaged one or not a file.

    ``main_folder`` is what a relative --config-path starts from.
    """
    name = arguments.config_name or "config"
    folders: List[str] = []
    if arguments.config_path:
        folders.append(os.path.join(main_folder, arguments.config_path))
    elif name == "config":
        return None
    if arguments.config_dir:
        folders.append(arguments.config_dir)
    for folder in folders:
        for ending in ("", ".yaml", ".yml"):
            path = os.path.join(folder, name + ending)
            if os.path.isfile(path):
                return path
    return None


def load_primary_config(path: str) -> DictConfig:
    """The configuration in the YAML file at ``path``; UserError when it holds none."""
    try:
        config = OmegaConf.load(path)
    except Exception as error:
        raise UserError(f"{path} is not a usable configuration: {' '.join(str(error).split())}") from None
    if not isinstance(config, DictConfig):
        raise UserError(f"{path} is not a usable configuration: it holds a list instead of settings")
    return config


def find_user_dir(overrides: List[str], primary: Optional[DictConfig]) -> Optional[str]:
    """The value of common.user_dir on the command line, else in the primary configuration."""
    given = [text for text in overrides if text.lstrip("+").startswith(_USER_DIR + "=")]
    if given:
        value = OverridesParser.create().parse_overrides(given)[-1].value()
    else:
        value = OmegaConf.select(primary, _USER_DIR) if primary is not None else None
    return str(value) if value else None


def store_with_schema(name: str, primary: DictConfig) -> str:
    """Register ``primary`` with fairseq's configuration as its schema; return the name to give to hydra.

    A defaults list without ``_self_`` keeps the order of hydra 1.0: its entries win over the file's own values.
    """
    defaults = primary.get("defaults")
    entries = list(defaults) if isinstance(defaults, ListConfig) else []
    with open_dict(primary):
        primary.defaults = ["/" + SCHEMA, *([] if "_self_" in entries else ["_self_"]), *entries]
    folder, file_name = os.path.split(os.path.splitext(name)[0] if name.endswith((".yaml", ".yml")) else name)
    stored = "fairseq_" + file_name
    ConfigStore.instance().store(group=folder or None, name=stored, node=primary, provider="fairseq")
    return os.path.join(folder, stored)

"""Weights in the safetensors format, under the names of the model's own parameters."""

import json
from pathlib import Path
from typing import Any

from torch import Tensor

import vaswani_plugin
from vaswani_plugin.data.text_files import replacing
from vaswani_plugin.errors import UserError
from vaswani_plugin.inference.loading import open_model


def export_safetensors(model_dir: Path, output: Path) -> dict[str, str]:
    """Writes every parameter once, with sizes and tied names in the file's metadata; returns the metadata.

    Raises:
        ValueError: safetensors is not installed, or the folder is no packaged model.
    """
    try:
        from safetensors.torch import save
    except ImportError as error:
        raise UserError(
            f"safetensors cannot be imported ({error}): install it with pip install 'vaswani-plugin[export]'"
        ) from error
    translator = open_model(model_dir)
    parameters = dict(translator.models[0].named_parameters(remove_duplicate=False))
    owners: dict[int, str] = {}
    tied = {name: owner for name, p in parameters.items() if (owner := owners.setdefault(id(p), name)) != name}
    tensors: dict[str, Tensor] = {
        name: parameter.detach().contiguous() for name, parameter in parameters.items() if name not in tied
    }
    metadata = {
        "format": "pt",
        "vaswani_plugin": vaswani_plugin.__version__,
        "config": json.dumps(_plain(translator.cfg.model)),
        "tied": json.dumps(tied),
    }
    data = save(tensors, metadata)
    with replacing(output) as (file,):
        file.write(data)
    return metadata


def _plain(config: Any) -> dict[str, Any]:
    return {name: value for name, value in config.items() if isinstance(value, str | int | float | None)}

"""The named edits that let fairseq 0.12.2 run on today's Python: mends (what is broken) and robustness."""

from fairseq_edits import (
    encoder_layer,
    hydra_and_omegaconf,
    packaging,
    python_and_numpy,
    safe_checkpoints,
    torch_api,
)
from fairseq_edits.edit import AddFile, Cut, Edit, EditError, Replace, apply_edits

MENDS = (
    *packaging.EDITS,
    *python_and_numpy.EDITS,
    *hydra_and_omegaconf.EDITS,
    *torch_api.EDITS,
    *encoder_layer.EDITS,
    *safe_checkpoints.EDITS,
)
ROBUSTNESS: tuple[Edit, ...] = ()

__all__ = ["MENDS", "ROBUSTNESS", "AddFile", "Cut", "Edit", "EditError", "Replace", "apply_edits"]

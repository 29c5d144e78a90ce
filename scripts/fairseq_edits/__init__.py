"""The named edits that let fairseq 0.12.2 run on today's Python: mends (what is broken) and robustness."""

from fairseq_edits import (
    accumulation,
    binarising,
    checkpoint_choice,
    checkpoint_writing,
    commands,
    dictionaries,
    encoder_layer,
    hydra_and_omegaconf,
    limits,
    lost_workers,
    packaging,
    preprocessing,
    process_group,
    python_and_numpy,
    reduced_precision,
    resuming,
    safe_checkpoints,
    scoring,
    stopping,
    text_lines,
    torch_api,
    unknown_parts,
    user_dir,
    workers,
)
from fairseq_edits.edit import AddFile, Cut, Edit, EditError, Replace, apply_edits

MENDS = (
    *packaging.EDITS,
    *python_and_numpy.EDITS,
    *hydra_and_omegaconf.EDITS,
    *torch_api.EDITS,
    *encoder_layer.EDITS,
    *safe_checkpoints.EDITS,
    *text_lines.EDITS,
    *binarising.EDITS,
    *scoring.EDITS,
    *workers.EDITS,
    *process_group.EDITS,
    *reduced_precision.EDITS,
    *accumulation.EDITS,
)
ROBUSTNESS = (
    *commands.EDITS,
    *user_dir.EDITS,
    *unknown_parts.EDITS,
    *checkpoint_writing.EDITS,
    *stopping.EDITS,
    *lost_workers.EDITS,
    *checkpoint_choice.EDITS,
    *preprocessing.EDITS,
    *dictionaries.EDITS,
    *limits.EDITS,
    *resuming.EDITS,
)

__all__ = ["MENDS", "ROBUSTNESS", "AddFile", "Cut", "Edit", "EditError", "Replace", "apply_edits"]

# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness in the choice of checkpoints: one that is not there or does not fit is told, never passed over."""

from fairseq_edits.edit import Edit, Replace

_CHECKPOINTS = "fairseq/checkpoint_utils.py"

EDITS = [
    Edit(
        "missing-restore-file",
        "a --restore-file that does not exist was passed over, and the training began from nothing",
        Replace(
            _CHECKPOINTS,
            """\
    if cfg.restore_file != "checkpoint_last.pt" and cfg.finetune_from_model:
        raise ValueError(
            "--finetune-from-model and --restore-file (non-default value) "
            "can not be specified together: " + str(cfg)
        )
""",
            """\
    if cfg.restore_file != "checkpoint_last.pt" and cfg.finetune_from_model:
        raise UserError(
            "--finetune-from-model and --restore-file both say where to begin; give one of them"
        )
    if cfg.restore_file != "checkpoint_last.pt" and not PathManager.exists(
        checkpoint_path
    ):
        raise MissingFile(f"--restore-file {checkpoint_path}: there is no such checkpoint")
""",
        ),
        Replace(
            _CHECKPOINTS,
            """\
                raise ValueError(
                    f"--finetune-from-model {cfg.finetune_from_model} does not exist"
                )
""",
            """\
                raise MissingFile(
                    f"--finetune-from-model {cfg.finetune_from_model}: there is no such checkpoint"
                )
""",
        ),
        Replace(
            _CHECKPOINTS,
            """\
        raise ValueError(
            "--finetune-from-model can not be set together with either --reset-optimizer"
            " or reset_lr_scheduler or reset_meters or reset_dataloader"
        )
""",
            """\
        raise UserError(
            "--finetune-from-model resets optimizer, schedule, meters and data by itself; leave the --reset-* flags out"
        )
""",
        ),
    ),
    Edit(
        "unfit-for-generation",
        "a checkpoint without settings, or with weights of other sizes than the model's, ended in a traceback",
        Replace(
            _CHECKPOINTS,
            """\
                raise RuntimeError(
                    f"Neither args nor cfg exist in state keys = {state.keys()}"
                )

            check_registered(""",
            """\
                raise UserError(
                    f"{filename} does not hold the settings of its model, only weights; name the checkpoint as the "
                    "training wrote it"
                )

            check_registered(""",
        ),
        Replace(
            _CHECKPOINTS,
            '    if "cfg" in state and state["cfg"] is not None:\n\n        # hack',
            """\
    if "cfg" in state and state["cfg"] is not None:
        if not isinstance(state["cfg"], (dict, DictConfig)) or "model" not in state["cfg"]:
            raise CheckpointError(
                f"{path} does not hold the settings of its model; name a checkpoint as a training wrote it"
            )

        # hack""",
        ),
        Replace(
            _CHECKPOINTS,
            "    state = _upgrade_state_dict(state)\n",
            """\
    try:
        state = _upgrade_state_dict(state)
    except (LookupError, TypeError, AttributeError) as error:
        raise CheckpointError(
            f"{path} is no whole fairseq checkpoint ({type(error).__name__}: {error}); name one as a training wrote it"
        ) from error
""",
        ),
        Replace(
            _CHECKPOINTS,
            """\
                model.load_state_dict(
                    state["model"], strict=strict, model_cfg=cfg.model
                )
""",
            """\
                try:
                    model.load_state_dict(
                        state["model"], strict=strict, model_cfg=cfg.model
                    )
                except RuntimeError as error:
                    lines = [line.strip() for line in str(error).splitlines()]
                    reason = lines[1] if len(lines) > 1 else lines[0]
                    raise UserError(
                        f"the weights in {filename} do not fit the model ({reason:.500})"
                    ) from error
""",
        ),
    ),
]

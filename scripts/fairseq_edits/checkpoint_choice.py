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
        "damaged-last",
        "a checkpoint_last.pt that a copy or a disk had cut off ended the training, though older ones lay beside it",
        Replace(
            "fairseq/trainer.py",
            """\
                    state = checkpoint_utils.load_checkpoint_to_cpu(
                        filename, load_on_all_ranks=load_on_all_ranks
                    )
""",
            """\
                    filename, state = checkpoint_utils.load_to_go_on(
                        self.cfg.checkpoint,
                        filename,
                        self.checkpoint_suffix,
                        load_on_all_ranks,
                    )
""",
        ),
        Replace(
            _CHECKPOINTS,
            "def check_registered(path, cfg, kinds):\n",
            """\
def load_to_go_on(cfg, path, suffix, load_on_all_ranks):
    \"\"\"Path and state of the checkpoint that a training goes on from: *path*, but when that is a damaged
    checkpoint_last.pt of this training's own folder, the one of the most updates among those beside it.\"\"\"
    try:
        return path, load_checkpoint_to_cpu(path, load_on_all_ranks=load_on_all_ranks)
    except DamagedCheckpoint as error:
        last = os.path.join(cfg.save_dir, "checkpoint_last{}.pt".format(suffix))
        if cfg.restore_file != "checkpoint_last.pt" or path != last:
            raise
        damage = str(error).rpartition("; ")[0] or str(error)

    def updates(state):
        return state["optimizer_history"][-1].get("num_updates", 0)

    found = None
    # of those that a number orders, the newest that can be read
    for pattern in (r"checkpoint_\\d+_(\\d+){}\\.pt", r"checkpoint(\\d+){}\\.pt", r"checkpoint_best{}\\.pt"):
        for candidate in checkpoint_paths(cfg.save_dir, pattern.format(re.escape(suffix))):
            try:
                state = load_checkpoint_to_cpu(candidate, load_on_all_ranks=load_on_all_ranks)
            except CheckpointError:
                continue
            if found is None or updates(state) > updates(found[1]):
                found = candidate, state
            break
    if found is None:
        raise DamagedCheckpoint(
            f"{damage}, and there is no other checkpoint to go on from in {cfg.save_dir}; restore the file, or remove "
            "it to begin from nothing"
        )
    logger.warning(
        f"{damage}; going on from {found[0]}, the newest one beside it that is whole, after {updates(found[1])} updates"
    )
    return found


def check_registered(path, cfg, kinds):
""",
        ),
        Replace(
            _CHECKPOINTS,
            "from fairseq.safe_load import CheckpointError, safe_load\n",
            "from fairseq.safe_load import CheckpointError, DamagedCheckpoint, safe_load\n",
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
    except Exception as error:
        reason = " ".join(str(error).split())
        raise CheckpointError(
            f"{path} is no whole fairseq checkpoint ({type(error).__name__}: {reason:.300}); name one as a training "
            "wrote it"
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

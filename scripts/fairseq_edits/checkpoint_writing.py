# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness of how checkpoints are written: never half a file under its final name, and no update without its file."""

from fairseq_edits.edit import Cut, Edit, Replace

_UTILS = "fairseq/checkpoint_utils.py"

EDITS = [
    Edit(
        "atomic-copies",
        "checkpoint_last.pt and checkpoint_best.pt were overwritten in place, so a kill or a full disk during the copy "
        "left neither the old nor the new one",
        Replace(
            "fairseq/file_io.py",
            "        return shutil.copyfile(src_path, dst_path)\n",
            """\
        passing = f"{dst_path}.{os.getpid()}.tmp"
        try:
            # What a killed process of this number left can be another name of a good checkpoint, so that nothing may be
            # written into it.
            if os.path.lexists(passing):
                os.remove(passing)
            try:
                os.link(src_path, passing)  # takes no time and no space
            except OSError:
                shutil.copyfile(src_path, passing)
                with open(passing, "rb+") as copied:
                    os.fsync(copied.fileno())
            os.replace(passing, dst_path)
        finally:
            if os.path.lexists(passing):
                os.remove(passing)
        return True
""",
        ),
    ),
    Edit(
        "atomic-save",
        "a failed attempt left its bytes in front of the next one, a save that failed or was killed left its .tmp file "
        "for ever, and a file that was renamed before it reached the disk could be empty after a power cut",
        Cut(
            _UTILS,
            "            # do atomic save\n",
            "        else:\n            # fallback to non-atomic save\n",
            """\
            # do atomic save
            try:
                with PathManager.open(filename + ".tmp", "wb") as f:
                    _torch_persistent_save(obj, f)
                    f.flush()
                    os.fsync(f.fileno())
                PathManager.rename(filename + ".tmp", filename)
            except Exception as error:
                raise UserError(
                    f"the checkpoint {filename} could not be written: {_reason(error)}; those before it are whole, and "
                    "the same command goes on from the last of them"
                ) from error
            finally:
                if os.path.lexists(filename + ".tmp"):
                    os.remove(filename + ".tmp")
""",
        ),
        Cut(
            _UTILS,
            "def _torch_persistent_save(obj, f):\n",
            "def _upgrade_state_dict(state):\n",
            """\
def _torch_persistent_save(obj, f):
    for i in range(3):
        try:
            return torch.save(obj, f)
        except Exception:
            if i == 2 or not f.seekable():
                raise
            logger.warning("a checkpoint could not be written; trying again")
            f.seek(0)
            f.truncate()


def _reason(error):
    \"\"\"What the system said, which torch puts into words of its own, else the error's first line.\"\"\"
    cause = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__ or cause.__context__
    return str(error).strip().split("\\n")[0] or type(error).__name__


def _remove_unfinished(save_dir, suffix):
    \"\"\"Remove what killed trainings left of checkpoints of this *suffix* that they were writing.\"\"\"
    name = re.compile(
        r"checkpoint(\\d*|_\\d+_\\d+|_best|_last|\\.best_\\w+_[\\d.]+)" + re.escape(suffix) + r"\\.pt(\\.\\d+)?\\.tmp"
    )
    for path in Path(save_dir).iterdir():
        if name.fullmatch(path.name):
            path.unlink(missing_ok=True)


""",
        ),
        Replace(
            _UTILS,
            """\
    if len(checkpoints) > 0 and trainer.should_save_checkpoint_on_current_rank:
        trainer.save_checkpoint(checkpoints[0], extra_state)
""",
            """\
    if len(checkpoints) > 0 and trainer.should_save_checkpoint_on_current_rank:
        _remove_unfinished(cfg.save_dir, suffix)
        trainer.save_checkpoint(checkpoints[0], extra_state)
""",
        ),
        Replace(
            _UTILS,
            """\
                assert PathManager.copy(
                    checkpoints[0], cp, overwrite=True
                ), f"Failed to copy {checkpoints[0]} to {cp}"
""",
            """\
                try:
                    PathManager.copy(checkpoints[0], cp, overwrite=True)
                except OSError as error:
                    raise UserError(f"{checkpoints[0]} was written, but not {cp}: {_reason(error)}") from error
""",
        ),
        Replace(_UTILS, "import time\nimport traceback\n", "import time\n"),
        Replace("fairseq/file_io.py", "        os.rename(src, dst)\n", "        os.replace(src, dst)\n"),
    ),
    Edit(
        "interval-at-epoch-end",
        "an update of --save-interval-updates that was also the last of its epoch got no checkpoint_E_U.pt",
        Replace(
            _UTILS,
            """\
        not end_of_epoch
        and cfg.save_interval_updates > 0
        and updates % cfg.save_interval_updates == 0
""",
            """\
        cfg.save_interval_updates > 0 and updates % cfg.save_interval_updates == 0
""",
        ),
        Replace(
            _UTILS,
            "    if not end_of_epoch and cfg.keep_interval_updates > 0:\n",
            "    if cfg.keep_interval_updates > 0:\n",
        ),
    ),
    Edit(
        "uninitialised-buffers",
        "a buffer that only carries a type was never initialised, so two equal runs wrote different checkpoints",
        *(
            Replace(
                f"fairseq/modules/{module}.py",
                'buffer("_float_tensor", torch.FloatTensor(1))',
                'buffer(\n            "_float_tensor", torch.zeros(1)\n        )',
            )
            for module in ("adaptive_softmax", "adaptive_input", "sinusoidal_positional_embedding")
        ),
        *(
            Replace(f"fairseq/models/{module}.py", "] = torch.FloatTensor(1)", "] = torch.zeros(1)")
            for module in ("masked_lm", "transformer/transformer_encoder", "transformer/transformer_decoder")
        ),
    ),
]

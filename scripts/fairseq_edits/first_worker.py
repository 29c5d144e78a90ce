# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness of several workers: the first one alone needs to see the checkpoints."""

from fairseq_edits.edit import Edit, Replace

EDITS = [
    Edit(
        "checkpoint-of-the-first-worker",
        "where only the first worker sees the checkpoints, as without a shared disk, all of them waited for ever for "
        "each other at the second start",
        Replace(
            "fairseq/checkpoint_utils.py",
            """\
def load_checkpoint(cfg: CheckpointConfig, trainer, **passthrough_args):
    \"\"\"
    Load a checkpoint and restore the training iterator.

    *passthrough_args* will be passed through to
    ``trainer.get_train_iterator``.
    \"\"\"

    reset_optimizer""",
            """\
def _choose_checkpoint(cfg: CheckpointConfig, trainer):
    \"\"\"The file to load and what to leave of it, as the flags and the files in this worker's sight say.\"\"\"

    reset_optimizer""",
        ),
        Replace(
            "fairseq/checkpoint_utils.py",
            "    extra_state = trainer.load_checkpoint(\n",
            """\
    return (
        checkpoint_path,
        reset_optimizer,
        reset_lr_scheduler,
        optimizer_overrides,
        reset_meters,
        reset_dataloader,
    )


def load_checkpoint(cfg: CheckpointConfig, trainer, **passthrough_args):
    \"\"\"
    Load a checkpoint and restore the training iterator.

    *passthrough_args* will be passed through to
    ``trainer.get_train_iterator``.
    \"\"\"
    (
        checkpoint_path,
        reset_optimizer,
        reset_lr_scheduler,
        optimizer_overrides,
        reset_meters,
        reset_dataloader,
    ) = trainer.from_first_worker(lambda: _choose_checkpoint(cfg, trainer))

    extra_state = trainer.load_checkpoint(
""",
        ),
        Replace(
            "fairseq/trainer.py",
            "        bexists = PathManager.isfile(filename)\n",
            "        bexists = self.from_first_worker(lambda: PathManager.isfile(filename))\n",
        ),
        Replace(
            "fairseq/trainer.py",
            """\
    def load_checkpoint(
        self,
        filename,
""",
            """\
    def from_first_worker(self, find):
        \"\"\"
        What *find* returns in the first worker, which may be the only one that sees the checkpoints.

        A UserError that it raises there is raised in all. Where each worker has checkpoints of its own, each finds.
        \"\"\"
        if self.data_parallel_world_size == 1 or self.tpu or self.checkpoint_suffix:
            return find()
        found, refusal = None, None
        if self.data_parallel_rank == 0:
            try:
                found = find()
            except UserError as error:
                refusal = str(error)
        found, refusal = distributed_utils.broadcast_object(
            (found, refusal),
            src_rank=0,
            group=self.data_parallel_process_group,
            dist_device=self.device,
        )
        if refusal is not None:
            error = UserError(refusal)
            error.of_all_workers = True
            raise error
        return found

    def load_checkpoint(
        self,
        filename,
""",
        ),
    ),
]

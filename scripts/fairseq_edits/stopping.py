# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness against SIGTERM (schedulers, containers, shutdowns): no update that was made is lost."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Cut, Edit, Replace

_ADDED = Path(__file__).parent / "added"
_TRAINER = "fairseq/trainer.py"
_TRAIN = "fairseq_cli/train.py"

EDITS = [
    Edit(
        "stop-signal",
        "SIGTERM killed a training wherever it was, and all updates since the last checkpoint were lost",
        AddFile("fairseq/stop_signal.py", _ADDED / "stop_signal.py"),
        # the workers' requests travel with statistics that are summed anyway
        Replace(
            _TRAINER,
            """\
                    sample_size,
                    ooms,
                    total_train_time,
                ),
            ) = self._aggregate_logging_outputs(
                logging_outputs, sample_size, ooms, train_time, ignore=only_dummies
            )
""",
            """\
                    sample_size,
                    ooms,
                    total_train_time,
                    self._stop_requests,
                ),
            ) = self._aggregate_logging_outputs(
                logging_outputs,
                sample_size,
                ooms,
                train_time,
                float(self.stop_signal.requested),
                ignore=only_dummies,
            )
""",
        ),
        Replace(
            _TRAINER,
            """\
            logging_outputs, (sample_size,) = self._aggregate_logging_outputs(
                logging_outputs,
                sample_size,
                ignore=is_dummy_batch,
            )
""",
            """\
            (
                logging_outputs,
                (sample_size, self._stop_requests),
            ) = self._aggregate_logging_outputs(
                logging_outputs,
                sample_size,
                float(self.stop_signal.requested),
                ignore=is_dummy_batch,
            )
""",
        ),
        Replace(
            _TRAINER,
            "    def reinitialize(self):\n",
            """\
    @property
    def stop_agreed(self) -> bool:
        \"\"\"Whether a worker had got SIGTERM when the workers last summed their statistics.\"\"\"
        if self.data_parallel_world_size == 1:
            return self.stop_signal.requested
        return bool(self._stop_requests > 0)

    def reinitialize(self):
""",
        ),
        Replace(
            _TRAINER,
            "        self._start_time = time.time()\n        self._previous_training_time = 0\n",
            "        self.stop_signal = StopSignal()\n        self._stop_requests = 0\n\n"
            "        self._start_time = time.time()\n        self._previous_training_time = 0\n",
        ),
        Replace(
            _TRAINER,
            "from fairseq.user_error import UserError\n",
            "from fairseq.stop_signal import StopSignal\nfrom fairseq.user_error import UserError\n",
        ),
    ),
    Edit(
        "stop-training",
        "the training loop has to end after the update in hand, without the validation that may take long",
        Cut(
            _TRAIN,
            "    while epoch_itr.next_epoch_idx <= max_epoch:\n",
            "    train_meter.stop()\n",
            """\
    with trainer.stop_signal:
        while epoch_itr.next_epoch_idx <= max_epoch:
            if lr <= cfg.optimization.stop_min_lr:
                logger.info(
                    f"stopping training because current learning rate ({lr}) is smaller "
                    "than or equal to minimum learning rate "
                    f"(--stop-min-lr={cfg.optimization.stop_min_lr})"
                )
                break

            # train for one epoch
            valid_losses, should_stop = train(cfg, trainer, task, epoch_itr)
            if should_stop:
                break

            # only use first validation loss to update the learning rate
            lr = trainer.lr_step(epoch_itr.epoch, valid_losses[0])

            epoch_itr = trainer.get_train_iterator(
                epoch_itr.next_epoch_idx,
                # sharded data: get train iterator for next epoch
                load_dataset=task.has_sharded_data("train"),
                # don't cache epoch iterators for sharded datasets
                disable_iterator_cache=task.has_sharded_data("train"),
            )
        if trainer.stop_agreed and torch.distributed.is_initialized():
            # no worker may end while another one still writes
            torch.distributed.barrier(distributed_utils.get_global_group())
""",
        ),
        Replace(
            _TRAIN,
            '        logger.info("ioPath PathManager finished waiting.")\n',
            """\
        logger.info("ioPath PathManager finished waiting.")

    if trainer.stop_agreed:
        sys.exit(STOP_STATUS)
""",
        ),
        Replace(
            _TRAIN,
            "    training_time_hours = trainer.cumulative_training_time() / (60 * 60)\n",
            """\
    if trainer.stop_agreed:
        should_stop = True
        logger.info(f"Stopping training due to SIGTERM after update {num_updates}")

    training_time_hours = trainer.cumulative_training_time() / (60 * 60)
""",
        ),
        Replace(
            _TRAIN,
            "        and num_updates >= cfg.dataset.validate_after_updates\n    )\n\n    # Validate\n",
            "        and num_updates >= cfg.dataset.validate_after_updates\n"
            "        and not trainer.stop_agreed\n    )\n\n    # Validate\n",
        ),
        Replace(
            _TRAIN,
            "    should_stop |= should_stop_early(cfg, valid_losses[0])\n",
            "    should_stop |= should_stop_early(cfg, valid_losses[0])\n    should_stop |= trainer.stop_agreed\n",
        ),
        Replace(
            _TRAIN,
            "                trainer.valid_step(sample)\n",
            """\
                trainer.valid_step(sample)
                if trainer.stop_agreed:
                    return [None]
""",
        ),
        Replace(
            _TRAIN,
            "from fairseq.trainer import Trainer\n",
            "from fairseq.trainer import Trainer\nfrom fairseq.user_error import STOP_STATUS\n",
        ),
        Replace(
            "fairseq/checkpoint_utils.py",
            "    ] = not cfg.no_last_checkpoints\n",
            '    ] = not cfg.no_last_checkpoints or getattr(trainer, "stop_agreed", False)\n',
        ),
    ),
    Edit(
        "stop-workers",
        "SIGTERM and SIGINT reached only the process that starts the workers, which then waited for the end of their "
        "training; or SIGTERM, sent to the whole group, ended the data workers first and crashed the training",
        Replace(
            "fairseq/distributed/utils.py",
            """\
            torch.multiprocessing.spawn(
                fn=distributed_main,
                args=(main, cfg, kwargs),
                nprocs=workers,
                join=True,
            )
""",
            """\
            started = torch.multiprocessing.spawn(
                fn=distributed_main,
                args=(main, cfg, kwargs),
                nprocs=workers,
                join=False,
            )
            forward_to(started)
            try:
                # what is left of them has some time to end by itself
                while not started.join(grace_period=15):
                    pass
            except KeyboardInterrupt:
                interrupt(started)
                raise
""",
        ),
        Replace(
            "fairseq/distributed/utils.py",
            "from fairseq.user_error import TOLD_STATUS,",
            "from fairseq.stop_signal import forward_to, interrupt\nfrom fairseq.user_error import TOLD_STATUS,",
        ),
        Replace(
            "fairseq/data/iterators.py",
            "                batch_sampler=self.batch_sampler,\n                num_workers=self.num_workers,\n",
            "                batch_sampler=self.batch_sampler,\n                num_workers=self.num_workers,\n"
            "                worker_init_fn=leave_to_parent,\n",
        ),
        Replace(
            "fairseq/data/iterators.py",
            "from fairseq.data import data_utils\n",
            "from fairseq.data import data_utils\nfrom fairseq.stop_signal import leave_to_parent\n",
        ),
    ),
]

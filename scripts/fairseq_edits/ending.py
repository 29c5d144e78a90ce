# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness in stopping and starting: a run that is over stays over, and one that goes on has lost nothing."""

from fairseq_edits.edit import Cut, Edit, Replace

_TRAIN = "fairseq_cli/train.py"
_CHECKPOINTS = "fairseq/checkpoint_utils.py"

EDITS = [
    Edit(
        "interrupted-start",
        "Ctrl-C in the seconds in which a command imports everything ended in a traceback",
        Replace(
            "fairseq_cli/__init__.py",
            "",
            """\
import os
import sys


def _tell_interrupt(kind, error, traceback, otherwise=sys.excepthook):
    if issubclass(kind, KeyboardInterrupt):
        print(f"{os.path.basename(sys.argv[0])}: interrupted", file=sys.stderr)
    else:
        otherwise(kind, error, traceback)


sys.excepthook = _tell_interrupt
""",
        ),
    ),
    Edit(
        "no-update-too-many",
        "the command of a run that had reached its --max-update made one update more at every start",
        Replace(
            _TRAIN,
            """\
    max_epoch = cfg.optimization.max_epoch or math.inf
    lr = trainer.get_lr()
""",
            """\
    max_epoch = cfg.optimization.max_epoch or math.inf
    if is_over(cfg, trainer):
        max_epoch = 0
    lr = trainer.get_lr()
""",
        ),
        Replace(
            _TRAIN,
            "def should_stop_early(",
            """\
def is_over(cfg: DictConfig, trainer: Trainer) -> bool:
    \"\"\"Whether the checkpoint that was loaded is one of a run that has ended.\"\"\"
    updates = trainer.get_num_updates()
    if updates >= (cfg.optimization.max_update or math.inf):
        logger.info(
            f"nothing to do: the run has made its {updates} updates (--max-update {cfg.optimization.max_update})"
        )
        return True
    runs = trainer.early_stop.get("num_runs", 0)
    if 0 < cfg.checkpoint.patience <= runs:
        logger.info(
            f"nothing to do: the run has ended after {updates} updates, the last {runs} validations without a better "
            f"one (--patience {cfg.checkpoint.patience})"
        )
        return True
    return False


def should_stop_early(""",
        ),
    ),
    Edit(
        "patience-across-starts",
        "--patience counted from 0 again after every start, so that a run with stops in between ended later, and one "
        "that had ended went on",
        Cut(
            _TRAIN,
            "def should_stop_early(",
            '@metrics.aggregate("train")\n',
            """\
def should_stop_early(
    cfg: DictConfig, valid_loss: float, state: Dict[str, Any]
) -> bool:
    \"\"\"``state`` is what earlier validations have left: the best loss, and how many did not better it since.\"\"\"
    # skip check if no validation was done in the current epoch
    if valid_loss is None:
        return False
    if cfg.checkpoint.patience <= 0:
        return False

    def is_better(a, b):
        return a > b if cfg.checkpoint.maximize_best_checkpoint_metric else a < b

    if "best" not in state or is_better(valid_loss, state["best"]):
        state.update(best=valid_loss, num_runs=0)
        return False
    state["num_runs"] += 1
    if state["num_runs"] >= cfg.checkpoint.patience:
        logger.info(
            "early stop since valid performance hasn't improved for last {} runs".format(
                cfg.checkpoint.patience
            )
        )
        return True
    return False


""",
        ),
        Replace(
            _TRAIN,
            "    should_stop |= should_stop_early(cfg, valid_losses[0])\n",
            "    should_stop |= should_stop_early(cfg, valid_losses[0], trainer.early_stop)\n",
        ),
        Replace(
            "fairseq/trainer.py",
            "        self._previous_training_time = 0\n",
            "        self._previous_training_time = 0\n        self.early_stop: Dict[str, Any] = {}\n",
        ),
        Replace(
            _CHECKPOINTS,
            '        extra_state.update({"best": save_checkpoint.best})\n',
            '        extra_state.update({"best": save_checkpoint.best})\n'
            "    if trainer.early_stop:\n"
            '        extra_state["early_stop"] = dict(trainer.early_stop)\n',
        ),
        Replace(
            _CHECKPOINTS,
            '        save_checkpoint.best = extra_state["best"]\n',
            '        save_checkpoint.best = extra_state["best"]\n'
            '        trainer.early_stop.update(extra_state.get("early_stop", {}))\n',
        ),
    ),
    Edit(
        "loss-of-the-ended-epoch",
        "a training that went on from the end of an epoch never told its schedule the loss of that epoch's validation",
        Replace(
            _CHECKPOINTS,
            "    trainer.lr_step(epoch_itr.epoch)\n",
            """\
    if extra_state is not None and not reset_optimizer and not reset_lr_scheduler:
        ended = extra_state["train_iterator"]
        if ended.get("version", 1) >= 2 and ended["iterations_in_epoch"] == 0:
            # what the training did next when it was not stopped
            trainer.lr_step(ended["epoch"] - 1, extra_state.get("val_loss"))
    trainer.lr_step(epoch_itr.epoch)
""",
        ),
    ),
]

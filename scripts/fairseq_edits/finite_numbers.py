# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness against NaN and infinity: they end a training in a sentence, and never reach a checkpoint."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Cut, Edit, Replace

_ADDED = Path(__file__).parent / "added"
_TRAINER = "fairseq/trainer.py"
_CHECKPOINTS = "fairseq/checkpoint_utils.py"

EDITS = [
    Edit(
        "finite-updates",
        "a loss or gradient that is NaN or infinite ended in a traceback, after every gradient had been printed and a "
        "crash.pt written; a loss that is not finite with a gradient that is was not noticed",
        AddFile("fairseq/finite_numbers.py", _ADDED / "finite_numbers.py"),
        Cut(
            _TRAINER,
            "            # check that grad norms are consistent across workers\n",
            '            with torch.autograd.profiler.record_function("optimizer"):\n',
            """\
            # on tpu check tensor is slow
            if not self.tpu:
                # in case of AMP the optimizer step is still required
                if self.cfg.common.amp:
                    overflow = not torch.isfinite(grad_norm).all()
                else:
                    check_update(self, logging_outputs, grad_norm)
                # check that grad norms are consistent across workers
                if (
                    not self.cfg.optimization.use_bmuf
                    and self.cfg.distributed_training.ddp_backend != "slowmo"
                ):
                    self._check_grad_norms(grad_norm)

""",
        ),
        Cut(
            _TRAINER,
            "        except FloatingPointError:\n",
            "        except OverflowError as e:\n",
            """\
        except FloatingPointError as error:
            raise scale_at_its_end(self, logging_outputs) from error
""",
        ),
        Replace(
            _TRAINER,
            '                logger.error("OOM during optimization, irrecoverable")\n            raise e\n',
            """\
                logger.error("OOM during optimization, irrecoverable")
            if "cannot be converted to type" in str(e) and "without overflow" in str(e):
                raise step_too_large(self) from e
            raise e
""",
        ),
        Replace(
            _TRAINER,
            "from fairseq.nan_detector import NanDetector\n",
            """\
from fairseq.finite_numbers import (
    check_loaded,
    check_optimizer_state,
    check_skipped,
    check_update,
    scale_at_its_end,
    step_too_large,
)
""",
        ),
    ),
    Edit(
        "endless-skipping",
        "with --threshold-loss-scale or --amp, a diverged training in float16 skipped every batch for ever",
        Replace(
            _TRAINER,
            "        except OverflowError as e:\n            overflow = True\n",
            "        except OverflowError as e:\n            overflow = True\n"
            "            check_skipped(self, logging_outputs)\n",
        ),
        Replace(
            _TRAINER,
            "                if self.cfg.common.amp and overflow:\n",
            "                if self.cfg.common.amp and overflow:\n"
            "                    check_skipped(self, logging_outputs)\n",
        ),
        Replace(
            _TRAINER,
            '        if not overflow or self.cfg.distributed_training.ddp_backend == "slowmo":\n',
            '        if not overflow or self.cfg.distributed_training.ddp_backend == "slowmo":\n'
            "            self.skipped_in_a_row = 0\n",
        ),
        Replace(
            _TRAINER,
            "        self._start_time = time.time()\n        self._previous_training_time = 0\n",
            "        self.skipped_in_a_row = 0\n\n"
            "        self._start_time = time.time()\n        self._previous_training_time = 0\n",
        ),
    ),
    Edit(
        "clipping-by-a-finite-norm",
        "clipping by a norm that is NaN made every gradient NaN, also those that a report should not name",
        Replace(
            "fairseq/utils.py",
            "    if max_norm > 0:\n        max_norm = float(max_norm)\n"
            "        clip_coef = (max_norm / (total_norm + 1e-6)).clamp_(max=1)\n",
            "    if max_norm > 0:\n        max_norm = float(max_norm)\n"
            "        clip_coef = (max_norm / (total_norm + 1e-6)).clamp_(max=1)\n"
            "        clip_coef = torch.where(torch.isfinite(total_norm), clip_coef, 1.0)\n",
        ),
    ),
    Edit(
        "workers-with-other-gradients",
        "workers whose gradients differ ended in tracebacks, each after a second forward and backward pass",
        Cut(
            _TRAINER,
            '                pretty_detail = "\\n".join(\n',
            "    def _reduce_and_log_stats(",
            """\
                norms = ", ".join(f"{norm:.8f}" for norm in self._grad_norm_buf.tolist())
                raise UserError(
                    f"update {self.get_num_updates() + 1}: the workers have different gradients (norms {norms}), "
                    "though each should have the sum of all; try --ddp-backend legacy_ddp, and the same kind of GPU "
                    "and versions of torch and CUDA for all workers"
                )

""",
        ),
    ),
    Edit(
        "finite-validation",
        "a validation loss of NaN was logged and training went on; no later checkpoint was ever the best",
        Replace(
            "fairseq_cli/train.py",
            "        valid_losses.append(stats[cfg.checkpoint.best_checkpoint_metric])\n",
            "        check_validation(trainer, subset, stats, cfg.checkpoint.best_checkpoint_metric)\n"
            "        valid_losses.append(stats[cfg.checkpoint.best_checkpoint_metric])\n",
        ),
        Replace(
            "fairseq_cli/train.py",
            "from fairseq.file_io import PathManager\n",
            "from fairseq.file_io import PathManager\nfrom fairseq.finite_numbers import check_validation\n",
        ),
        Replace(
            "fairseq_cli/validate.py",
            "        progress.print(log_output, tag=subset, step=i)\n",
            "        progress.print(log_output, tag=subset, step=i)\n"
            "        check_validated(cfg.common_eval.path, subset, log_output)\n",
        ),
        Replace(
            "fairseq_cli/validate.py",
            "from fairseq.user_error import tells_user_errors\n",
            "from fairseq.finite_numbers import check_validated\nfrom fairseq.user_error import tells_user_errors\n",
        ),
    ),
    Edit(
        "finite-checkpoints",
        "an update that made weights NaN or infinite was saved over the last good checkpoint; such a checkpoint was "
        "trained on from until the first loss, or translated with",
        Replace(
            _CHECKPOINTS,
            "    trainer.consolidate_optimizer()  # TODO(SS)",
            "    check_before_saving(trainer)\n\n    trainer.consolidate_optimizer()  # TODO(SS)",
        ),
        Replace(
            _CHECKPOINTS,
            "        # build model for ensemble\n",
            '        check_loaded(model, orig_filename, "name an earlier checkpoint")\n'
            "        # build model for ensemble\n",
        ),
        Replace(
            _CHECKPOINTS,
            "from fairseq.file_io import PathManager\n",
            "from fairseq.file_io import PathManager\n"
            "from fairseq.finite_numbers import check_before_saving, check_loaded\n",
        ),
        Replace(
            _TRAINER,
            """\
            extra_state = state["extra_state"]
            self._optim_history = state["optimizer_history"]
""",
            """\
            check_loaded(
                self.get_model(), filename, "go on from an earlier checkpoint with --restore-file"
            )
            extra_state = state["extra_state"]
            self._optim_history = state["optimizer_history"]
""",
        ),
        Replace(
            _TRAINER,
            "            self.optimizer.load_state_dict(last_optim_state, optimizer_overrides)\n",
            "            check_optimizer_state(last_optim_state, filename)\n"
            "            self.optimizer.load_state_dict(last_optim_state, optimizer_overrides)\n",
        ),
    ),
    Edit(
        "loss-scale-after-a-resume",
        "the loss scale was resumed, but not for how many updates it had held, so that it was raised later",
        Replace(
            "fairseq/optim/dynamic_loss_scaler.py",
            "    def scale(self, outputs):\n",
            """\
    _COUNTS = ("_iter", "_last_overflow_iter", "_last_rescale_iter", "_overflows_since_rescale")

    def state_dict(self):
        return {name: getattr(self, name) for name in self._COUNTS}

    def load_state_dict(self, state_dict):
        for name in self._COUNTS:
            setattr(self, name, state_dict.get(name, getattr(self, name)))

    def scale(self, outputs):
""",
        ),
        Replace(
            "fairseq/optim/fp16_optimizer.py",
            '            state_dict["loss_scale"] = self.scaler.loss_scale\n',
            '            state_dict["loss_scale"] = self.scaler.loss_scale\n'
            '            state_dict["loss_scaler"] = self.scaler.state_dict()\n',
            count=2,
        ),
        Replace(
            "fairseq/optim/fp16_optimizer.py",
            '            self.scaler.loss_scale = state_dict["loss_scale"]\n',
            '            self.scaler.loss_scale = state_dict["loss_scale"]\n'
            '            self.scaler.load_state_dict(state_dict.get("loss_scaler", {}))\n',
            count=2,
        ),
        Replace(
            "fairseq/optim/amp_optimizer.py",
            "    def backward(self, loss):\n",
            """\
    def state_dict(self):
        \"\"\"Return the optimizer's state dict.\"\"\"
        return {**self.fp32_optimizer.state_dict(), "loss_scaler": self.scaler.state_dict()}

    def load_state_dict(self, state_dict, optimizer_overrides=None):
        \"\"\"Load an optimizer state dict; one without a loss scale, of fairseq's own, begins a new one.\"\"\"
        if state_dict.get("loss_scaler"):
            self.scaler.load_state_dict(state_dict["loss_scaler"])
        self.fp32_optimizer.load_state_dict(state_dict, optimizer_overrides)

    def backward(self, loss):
""",
        ),
    ),
]

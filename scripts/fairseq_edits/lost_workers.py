# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness of several workers: when one of them has gone, the others end soon and say why."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Cut, Edit, Replace

_ADDED = Path(__file__).parent / "added"
_UTILS = "fairseq/distributed/utils.py"
_TIMEOUT = "fairseq/distributed/distributed_timeout_wrapper.py"

EDITS = [
    Edit(
        "lost-worker",
        "a worker whose connection to another one ended, or could not be made, died in a traceback from inside torch",
        AddFile("fairseq/lost_worker.py", _ADDED / "lost_worker.py"),
        Cut(
            _UTILS,
            """\
    cfg.distributed_training.distributed_rank = distributed_init(cfg)

    after_distributed_init_fn""",
            "def call_main(cfg: FairseqConfig, main, **kwargs):\n",
            """\
    try:
        with tells_no_connection(cfg.distributed_training.distributed_rank):
            cfg.distributed_training.distributed_rank = distributed_init(cfg)

        with tells_lost_workers(cfg.distributed_training.distributed_rank):
            after_distributed_init_fn = kwargs.pop("after_distributed_init_fn", None)
            if after_distributed_init_fn:
                cfg = after_distributed_init_fn(cfg)

            main(cfg, **kwargs)

            if torch.distributed.is_initialized():
                torch.distributed.barrier(get_global_group())
                del get_global_group._global_group
                torch.distributed.destroy_process_group()
    except Exception as error:
        if cfg.distributed_training.distributed_no_spawn or not is_user_error(error):
            raise
        tell(error)
        os._exit(TOLD_STATUS)


""",
        ),
        Replace(
            _UTILS,
            "from fairseq.stop_signal import forward_to, interrupt\n",
            "from fairseq.lost_worker import stop_with_parent, tells_lost_workers, tells_no_connection\n"
            "from fairseq.stop_signal import forward_to, interrupt\n",
        ),
    ),
    Edit(
        "killed-torchrun",
        "the workers of a torchrun that was killed trained on, beside those of the same command given again",
        Replace(
            _UTILS,
            "    # processes are created by torch.distributed.launch\n    cfg.distributed_no_spawn = True\n",
            """\
    # processes are created by torch.distributed.launch
    cfg.distributed_no_spawn = True
    if "TORCHELASTIC_RUN_ID" in os.environ:
        stop_with_parent()
""",
        ),
    ),
    Edit(
        "heartbeat-timeout",
        "--heartbeat-timeout sent a signal that a worker waiting for another one never hears, so that nothing ended "
        "it; after the training, the time went on being counted",
        Replace(
            _TIMEOUT,
            """\
            self._heartbeat_thread = threading.Thread(
                target=self._check_heartbeat,
                args=(os.getpid(),),
                daemon=True,
            )
            self._heartbeat_thread.start()
            self._terminated = False
        else:
            self._heartbeat = None
            self._heartbeat_thread = None
""",
            """\
            self._stopped = threading.Event()
            # the thread must not keep this object, whose end is its own
            threading.Thread(
                target=_check_heartbeat,
                args=(self._heartbeat, self._stopped, timeout),
                daemon=True,
            ).start()
        else:
            self._heartbeat = None
""",
        ),
        Replace(
            _TIMEOUT,
            """\
        if self._heartbeat_thread is not None:
            self._terminated = True
            self._heartbeat_thread.join()
""",
            """\
        if self._heartbeat is not None:
            self._stopped.set()
            self._heartbeat.set()
""",
        ),
        Replace(
            _TIMEOUT,
            """\

    def _check_heartbeat(self, parent_pid):
        self._heartbeat.wait()  # wait for the first forward pass
        while True:
            self._heartbeat.clear()
            success = self._heartbeat.wait(timeout=self.timeout)
            if self._terminated:
                break
            elif not success:
                logger.error(
                    (
                        "Killing job for not making progress in {} seconds. "
                        "Set --heartbeat-timeout=-1 to disable this timeout."
                    ).format(int(self.timeout))
                )
                os.kill(parent_pid, self.signal)
                return
""",
            """\


def _check_heartbeat(heartbeat, stopped, timeout):
    heartbeat.wait()  # wait for the first forward pass
    while True:
        heartbeat.clear()
        if stopped.is_set():
            return
        if not heartbeat.wait(timeout=timeout):
            end_for_lack_of_progress(timeout)
""",
        ),
        Replace(
            _TIMEOUT,
            """\
        signal (Optional): signal to send once timeout is triggered
    \"\"\"

    def __init__(self, module: nn.Module, timeout: int, signal=signal.SIGINT):
        super().__init__()
        self.module = module
        self.timeout = timeout
        self.signal = signal
""",
            """\
    \"\"\"

    def __init__(self, module: nn.Module, timeout: int):
        super().__init__()
        self.module = module
""",
        ),
        Replace(
            _TIMEOUT,
            """\
import logging
import os
import signal
import threading

from torch import nn


logger = logging.getLogger(__name__)
""",
            """\
import threading

from fairseq.lost_worker import end_for_lack_of_progress
from torch import nn
""",
        ),
    ),
]

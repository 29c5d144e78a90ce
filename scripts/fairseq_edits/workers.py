# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of how workers are started, above all on CPU: as many run as were asked for, or an error says why."""

from fairseq_edits.edit import Edit, Replace

_UTILS = "fairseq/distributed/utils.py"

EDITS = [
    Edit(
        "workers-know-cpu",
        "the code that starts workers counts GPUs and cannot see --cpu",
        Replace(
            "fairseq/dataclass/configs.py",
            '    tpu: bool = II("common.tpu")\n    # configuration for --ddp-backend=fully_sharded\n',
            '    tpu: bool = II("common.tpu")\n    cpu: bool = II("common.cpu")\n'
            "    # configuration for --ddp-backend=fully_sharded\n",
        ),
    ),
    Edit(
        "start-cpu-workers",
        "on CPU, --distributed-world-size 2 started no worker and ended in success (with --distributed-init-method), "
        "trained with one worker (with --distributed-port), or died in an assertion; a random port could be in use",
        Replace(
            _UTILS,
            """\
    elif cfg.distributed_port > 0:
        # we can determine the init method automatically for Slurm
        _infer_slurm_init(cfg, num_pipelines_per_node)
    elif cfg.distributed_world_size > 1 or force_distributed:
        # fallback for single node with multiple GPUs
        _infer_single_node_init(cfg)
""",
            """\
    else:
        if cfg.distributed_port > 0:
            # we can determine the init method automatically for Slurm
            _infer_slurm_init(cfg, num_pipelines_per_node)
        if cfg.distributed_init_method is None and (
            cfg.distributed_world_size > 1 or force_distributed
        ):
            # fallback for single node with multiple workers
            _infer_single_node_init(cfg)
""",
        ),
        Replace(
            _UTILS,
            """\
            cfg.distributed_num_procs = min(
                torch.cuda.device_count(), cfg.distributed_world_size
            )
""",
            """\
            cfg.distributed_num_procs = local_workers(cfg)
""",
        ),
        Replace(
            _UTILS,
            """\
def infer_init_method(cfg: DistributedTrainingConfig, force_distributed=False):
""",
            """\
def uses_gpus(cfg: DistributedTrainingConfig) -> bool:
    return torch.cuda.is_available() and not getattr(cfg, "cpu", False)


def local_workers(cfg: DistributedTrainingConfig) -> int:
    \"\"\"How many workers this process starts: one a GPU, or on CPU as many as were asked for.\"\"\"
    if uses_gpus(cfg):
        return min(torch.cuda.device_count(), cfg.distributed_world_size)
    if cfg.distributed_rank:
        raise UserError(
            f"--distributed-rank {cfg.distributed_rank} on CPU needs --distributed-no-spawn "
            "(one process a rank), or start the workers of all machines with torchrun"
        )
    return cfg.distributed_world_size


def infer_init_method(cfg: DistributedTrainingConfig, force_distributed=False):
""",
        ),
        Replace(
            _UTILS,
            """\
    assert (
        cfg.distributed_world_size <= torch.cuda.device_count()
    ), f"world size is {cfg.distributed_world_size} but have {torch.cuda.device_count()} available devices"
    port = random.randint(10000, 20000)
""",
            """\
    if uses_gpus(cfg) and cfg.distributed_world_size > torch.cuda.device_count():
        raise UserError(
            f"--distributed-world-size {cfg.distributed_world_size} asks for more workers than the "
            f"{torch.cuda.device_count()} GPUs of this machine; start several machines with torchrun"
        )
    port = cfg.distributed_port
    if port <= 0:
        with socket.socket() as free:
            free.bind(("localhost", 0))
            port = free.getsockname()[1]
""",
        ),
        Replace(
            _UTILS,
            """\
            start_rank = cfg.distributed_training.distributed_rank
            cfg.distributed_training.distributed_rank = None  # assign automatically
""",
            """\
            workers = local_workers(cfg.distributed_training)
            start_rank = cfg.distributed_training.distributed_rank
            cfg.distributed_training.distributed_rank = None  # assign automatically
""",
        ),
        Replace(
            _UTILS,
            """\
                nprocs=min(
                    torch.cuda.device_count(),
                    cfg.distributed_training.distributed_world_size,
                ),
""",
            """\
                nprocs=workers,
""",
        ),
        Replace(_UTILS, "import random\nimport socket\n", "import socket\n"),
        Replace(
            _UTILS,
            "from fairseq.dataclass.configs import DistributedTrainingConfig, FairseqConfig\n",
            "from fairseq.dataclass.configs import DistributedTrainingConfig, FairseqConfig\n"
            "from fairseq.user_error import TOLD_STATUS, UserError, is_user_error, tell\n",
        ),
    ),
    Edit(
        "slurm-cpu-workers",
        "on Slurm nodes without GPUs the number of workers came out as 0",
        Replace(
            _UTILS,
            """\
                cfg.distributed_rank = node_id * gpus_per_node
                cfg.distributed_world_size = nnodes * gpus_per_node
""",
            """\
                if not uses_gpus(cfg):
                    gpus_per_node = 1
                    cfg.distributed_no_spawn = True
                cfg.distributed_rank = node_id * gpus_per_node
                cfg.distributed_world_size = nnodes * gpus_per_node
""",
        ),
    ),
]

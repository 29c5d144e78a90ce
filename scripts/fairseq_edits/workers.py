# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of training with several workers, above all on CPU: as many workers run as were asked for, or an error says why."""

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
    Edit(
        "cpu-backend",
        "the default backend nccl cannot connect CPU workers; with --cpu a GPU was still used for a first all-reduce",
        Replace(
            _UTILS,
            """\
            dist.init_process_group(
                backend=cfg.distributed_training.distributed_backend,
""",
            """\
            if (
                cfg.distributed_training.distributed_backend == "nccl"
                and not uses_gpus(cfg.distributed_training)
            ):
                logger.info("connecting CPU workers with gloo instead of nccl")
                cfg.distributed_training.distributed_backend = "gloo"
            dist.init_process_group(
                backend=cfg.distributed_training.distributed_backend,
""",
        ),
        Replace(
            _UTILS,
            "            if torch.cuda.is_available():\n                dist.all_reduce(torch.zeros(1).cuda())\n",
            "            if uses_gpus(cfg.distributed_training):\n                dist.all_reduce(torch.zeros(1).cuda())\n",
        ),
    ),
    Edit(
        "ddp-on-cpu",
        "torch's DistributedDataParallel refuses device_ids for a module on CPU",
        Replace(
            "fairseq/models/distributed_fairseq_model.py",
            """\
            device_ids=[args.device_id],
            output_device=args.device_id,
""",
            """\
            device_ids=[args.device_id] if device.type == "cuda" else None,
            output_device=args.device_id if device.type == "cuda" else None,
""",
        ),
    ),
    Edit(
        "ddp-buffers",
        "newer torch warns about broadcast_buffers, which it calls forward_sync_buffers",
        Replace(
            "fairseq/models/distributed_fairseq_model.py",
            "            broadcast_buffers=args.broadcast_buffers,\n            bucket_cap_mb=",
            "            **{_SYNC_BUFFERS: args.broadcast_buffers},\n            bucket_cap_mb=",
        ),
        Replace(
            "fairseq/models/distributed_fairseq_model.py",
            "_SLOWMO_DDP_DISABLED = False\n",
            """\
_SYNC_BUFFERS = (
    "forward_sync_buffers"
    if "forward_sync_buffers"
    in inspect.signature(DistributedDataParallel.__init__).parameters
    else "broadcast_buffers"
)

_SLOWMO_DDP_DISABLED = False
""",
        ),
        Replace("fairseq/models/distributed_fairseq_model.py", "import logging\nimport os\n", "import inspect\nimport logging\nimport os\n"),
    ),
    Edit(
        "gather-on-cpu",
        "statistics that cannot be summed were gathered through a GPU tensor whatever the backend",
        Replace(
            _UTILS,
            """\
        all_gather_list._buffer = torch.cuda.ByteTensor(buffer_size)
        all_gather_list._cpu_buffer = torch.ByteTensor(max_size).pin_memory()
""",
            """\
        on_gpu = dist.get_backend(group) == "nccl"
        all_gather_list._buffer = torch.zeros(
            buffer_size, dtype=torch.uint8, device="cuda" if on_gpu else "cpu"
        )
        all_gather_list._cpu_buffer = torch.zeros(
            max_size, dtype=torch.uint8, pin_memory=on_gpu
        )
""",
        ),
    ),
    Edit(
        "end-of-workers",
        "a worker left its process group open, which torch warns about; a mistake of the user ended every worker in a "
        "traceback",
        Replace(
            _UTILS,
            """\
    main(cfg, **kwargs)

    if torch.distributed.is_initialized():
        torch.distributed.barrier(get_global_group())
""",
            """\
    try:
        main(cfg, **kwargs)
    except Exception as error:
        if cfg.distributed_training.distributed_no_spawn or not is_user_error(error):
            raise
        tell(error)
        os._exit(TOLD_STATUS)

    if torch.distributed.is_initialized():
        torch.distributed.barrier(get_global_group())
        del get_global_group._global_group
        torch.distributed.destroy_process_group()
""",
        ),
    ),
]

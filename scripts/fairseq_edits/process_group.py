# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of how started workers connect, exchange gradients and statistics, and part again."""

from fairseq_edits.edit import Edit, Replace

_UTILS = "fairseq/distributed/utils.py"

EDITS = [
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
            "            if uses_gpus(cfg.distributed_training):\n"
            "                dist.all_reduce(torch.zeros(1).cuda())\n",
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
        Replace(
            "fairseq/models/distributed_fairseq_model.py",
            "import logging\nimport os\n",
            "import inspect\nimport logging\nimport os\n",
        ),
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
    Edit(
        "debugger-lock",
        "importing fairseq made a lock with a name in the system; data workers of spawned workers left theirs behind, "
        "and a warning about leaked semaphores was the last thing that a training printed",
        Replace(
            "fairseq/pdb.py",
            "_stdin_lock = multiprocessing.Lock()\n",
            """\
_stdin_lock = (
    multiprocessing.get_context("fork").Lock()  # shared by forking, needs no name
    if "fork" in multiprocessing.get_all_start_methods()
    else multiprocessing.Lock()
)
""",
        ),
    ),
]

# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness around --user-dir: one that is missing, misspelt or forgotten is told in one sentence."""

from fairseq_edits.edit import Cut, Edit, Replace

EDITS = [
    Edit(
        "wrong-user-dir",
        "a --user-dir that does not exist or is a file ended in a traceback, and one that holds no plugin (the "
        "plugin's parent folder) was accepted and loaded nothing",
        Cut(
            "fairseq/utils.py",
            "                else:\n                    raise FileNotFoundError(module_path)\n",
            "        # ensure that user modules are only imported once\n",
            """\
                else:
                    raise MissingFile(
                        f"--user-dir {args.user_dir}: there is no folder {module_path}"
                    )
        _check_user_dir(args.user_dir, module_path)

""",
        ),
        Replace(
            "fairseq/utils.py",
            "def import_user_module(args):\n",
            """\
def _check_user_dir(given, module_path):
    if not os.path.isdir(module_path):
        raise UserError(
            f"--user-dir {given} is a file; name the folder of the plugin"
        )
    holds_plugin = ("__init__.py", "tasks", "models")
    if any(os.path.exists(os.path.join(module_path, name)) for name in holds_plugin):
        return
    inside = [
        entry.name
        for entry in sorted(os.scandir(module_path), key=lambda entry: entry.name)
        if entry.is_dir() and os.path.isfile(os.path.join(entry.path, "__init__.py"))
    ]
    hint = f"; did you mean {os.path.join(given, inside[0])}?" if inside else ""
    raise UserError(
        f"--user-dir {given} is not the folder of a plugin, it has no __init__.py{hint}"
    )


def import_user_module(args):
""",
        ),
        Replace(
            "fairseq/utils.py",
            """\
            elif module_path in sys.modules[module_name].__path__:
                logger.info(f"--user-dir={module_path} has already been imported.")
            else:
                raise ImportError(
                    "Failed to import --user-dir={} because the corresponding module name "
                    "({}) is not globally unique. Please rename the directory to "
                    "something unique and try again.".format(module_path, module_name)
                )
""",
            """\
            elif os.path.realpath(module_path) in map(
                os.path.realpath, getattr(sys.modules[module_name], "__path__", [])
            ):
                logger.info(f"--user-dir={module_path} has already been imported.")
            else:
                raise UserError(
                    "Failed to import --user-dir={} because the corresponding module name "
                    "({}) is not globally unique. Please rename the directory to "
                    "something unique and try again.".format(module_path, module_name)
                )
""",
        ),
        Replace(
            "fairseq/utils.py",
            "from torch import Tensor\n\nif TYPE_CHECKING:\n",
            "from torch import Tensor\n\nfrom fairseq.user_error import MissingFile, UserError\n\nif TYPE_CHECKING:\n",
        ),
    ),
    Edit(
        "forgotten-user-dir",
        "a checkpoint of a plugin that is not loaded ended in 'IndexError: Replacement index 1 out of range'",
        Replace(
            "fairseq/checkpoint_utils.py",
            """\
def load_model_ensemble(
""",
            """\
def check_registered(path, cfg, kinds):
    \"\"\"Raise UserError when a part that the checkpoint at *path* was trained with is not registered.\"\"\"
    from fairseq.models import ARCH_MODEL_REGISTRY, MODEL_REGISTRY
    from fairseq.registry import REGISTRIES
    from fairseq.tasks import TASK_REGISTRY

    def name(part):
        # "_name" is the registered name; a legacy Namespace has it under its kind
        found = getattr(part, "_name", None)
        return found if isinstance(found, str) else None

    known = {
        "model": {**MODEL_REGISTRY, **ARCH_MODEL_REGISTRY},
        "task": TASK_REGISTRY,
        "criterion": REGISTRIES["criterion"]["registry"],
    }
    for kind in kinds:
        wanted = name(cfg.get(kind, None))
        if wanted is not None and wanted not in known[kind]:
            what = "architecture" if kind == "model" else kind
            common = cfg.get("common", None)
            stored = common.get("user_dir", None) if common is not None else None
            where = f" (it was trained with --user-dir {stored})" if stored else ""
            raise UserError(
                f"this checkpoint needs --user-dir, because its {what} {wanted!r} is not "
                f"part of fairseq{where}: {path}"
            )


def load_model_ensemble(
""",
        ),
        Replace(
            "fairseq/checkpoint_utils.py",
            """\
            if task is None:
                task = tasks.setup_task(cfg.task)

            if "task_state" in state:
""",
            """\
            check_registered(filename, cfg, ["model"] if task else ["task", "model"])
            if task is None:
                task = tasks.setup_task(cfg.task)

            if "task_state" in state:
""",
        ),
        Replace(
            "fairseq/checkpoint_utils.py",
            "from fairseq.safe_load import CheckpointError, safe_load\n",
            "from fairseq.safe_load import CheckpointError, safe_load\n"
            "from fairseq.user_error import MissingFile, UserError\n",
        ),
        Replace(
            "fairseq/checkpoint_utils.py",
            '                raise IOError("Model file not found: {}".format(filename))\n',
            '                raise MissingFile("Model file not found: {}".format(filename))\n',
        ),
        Replace(
            "fairseq_cli/validate.py",
            "    # Build criterion\n    criterion = task.build_criterion(saved_cfg.criterion)\n",
            """\
    # Build criterion
    checkpoint_utils.check_registered(cfg.common_eval.path, saved_cfg, ["criterion"])
    criterion = task.build_criterion(saved_cfg.criterion)
""",
        ),
    ),
    Edit(
        "unknown-part",
        "a model, task or other part that is not registered ended in an assertion that prints the whole configuration, "
        "a broken format string, or a KeyError",
        Replace(
            "fairseq/models/__init__.py",
            """\
    assert model is not None, (
        f"Could not infer model type from {cfg}. "
        "Available models: {}".format(MODEL_DATACLASS_REGISTRY.keys())
        + f" Requested model type: {model_type}"
    )
""",
            """\
    if model is None and model_type is None:
        raise UserError("no model is chosen; give --arch (or model._name)")
    if model is None:
        raise UserError(
            f"there is no model {model_type!r} in fairseq; if a plugin defines it, give its --user-dir"
        )
""",
        ),
        Replace(
            "fairseq/models/__init__.py",
            "from fairseq.dataclass.utils import merge_with_parent\n",
            "from fairseq.dataclass.utils import merge_with_parent\nfrom fairseq.user_error import UserError\n",
        ),
        Cut(
            "fairseq/tasks/__init__.py",
            "    assert (\n        task is not None\n",
            "    return task.setup_task(cfg, **kwargs)\n",
            """\
    if task is None:
        raise UserError(
            f"there is no task {task_name!r} in fairseq; if a plugin defines it, give its --user-dir"
        )

""",
        ),
        Replace(
            "fairseq/tasks/__init__.py",
            "        task = TASK_REGISTRY[task_name]\n        if task_name in TASK_DATACLASS_REGISTRY:\n",
            "        task = TASK_REGISTRY.get(task_name)\n        if task_name in TASK_DATACLASS_REGISTRY:\n",
        ),
        Replace(
            "fairseq/tasks/__init__.py",
            "from fairseq.dataclass.utils import merge_with_parent\n",
            "from fairseq.dataclass.utils import merge_with_parent\nfrom fairseq.user_error import UserError\n",
        ),
        Replace(
            "fairseq/registry.py",
            "        cls = REGISTRY[choice]\n",
            """\
        if choice not in REGISTRY:
            raise UserError(
                f"there is no {registry_name} {choice!r} in fairseq; if a plugin defines it, give its --user-dir"
            )
        cls = REGISTRY[choice]
""",
        ),
        Replace(
            "fairseq/registry.py",
            "from fairseq.dataclass.utils import merge_with_parent\n",
            "from fairseq.dataclass.utils import merge_with_parent\nfrom fairseq.user_error import UserError\n",
        ),
    ),
]

# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness around parts of a plugin that is not loaded: what was forgotten is told in one sentence."""

from fairseq_edits.edit import Cut, Edit, Replace

EDITS = [
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

# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Robustness around --user-dir: one that is missing, misspelt or forgotten is told in one sentence."""

from fairseq_edits.edit import Cut, Edit, Replace

EDITS = [
    Edit(
        "wrong-user-dir",
        "a --user-dir that does not exist, is a file or cannot be imported ended in a traceback (and passed at the "
        "second try of one process), and one that holds no plugin (the plugin's parent folder) was accepted",
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


def _origin(module):
    return list(getattr(module, "__path__", None) or [getattr(module, "__file__", "built in")])[0]


def _import_plugin(module_path, module_name):
    importlib.import_module(module_name)

    tasks_path = os.path.join(module_path, "tasks")
    if os.path.exists(tasks_path):
        from fairseq.tasks import import_tasks

        import_tasks(tasks_path, f"{module_name}.tasks")

    models_path = os.path.join(module_path, "models")
    if os.path.exists(models_path):
        from fairseq.models import import_models

        import_models(models_path, f"{module_name}.models")


def _import_failure(given, module_path, error):
    frames = traceback.extract_tb(error.__traceback__)
    inside = [frame for frame in frames if frame.filename.startswith(module_path)]
    place = (inside or frames)[-1]
    where = f"{place.filename}, line {place.lineno}"
    if isinstance(error, SyntaxError) and error.filename:
        where = f"{error.filename}, line {error.lineno}"
    what = " ".join(str(error).split())
    return f"--user-dir {given} could not be imported: {type(error).__name__}: {what} ({where})"


def import_user_module(args):
""",
        ),
        Replace("fairseq/utils.py", "import sys\n", "import sys\nimport traceback\n"),
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
                    f"--user-dir {module_path} cannot be used beside another {module_name} that is imported already, "
                    f"{_origin(sys.modules[module_name])}; give that one, or start without it"
                )

            import_user_module.memo.add(module_path)
""",
        ),
        Replace(
            "fairseq/utils.py",
            """\
            import_user_module.memo.add(module_path)

            module_parent, module_name = os.path.split(module_path)
            if module_name not in sys.modules:
                sys.path.insert(0, module_parent)
                importlib.import_module(module_name)

                tasks_path = os.path.join(module_path, "tasks")
                if os.path.exists(tasks_path):
                    from fairseq.tasks import import_tasks

                    import_tasks(tasks_path, f"{module_name}.tasks")

                models_path = os.path.join(module_path, "models")
                if os.path.exists(models_path):
                    from fairseq.models import import_models

                    import_models(models_path, f"{module_name}.models")
""",
            """\
            module_parent, module_name = os.path.split(module_path)
            if module_name not in sys.modules:
                sys.path.insert(0, module_parent)
                try:
                    _import_plugin(module_path, module_name)
                except Exception as error:
                    # a second try must not find half a plugin
                    sys.path.remove(module_parent)
                    sys.modules.pop(module_name, None)
                    raise UserError(
                        _import_failure(args.user_dir, module_path, error)
                    ) from error
""",
        ),
        Replace(
            "fairseq/utils.py",
            "from torch import Tensor\n\nif TYPE_CHECKING:\n",
            "from torch import Tensor\n\nfrom fairseq.user_error import MissingFile, UserError\n\nif TYPE_CHECKING:\n",
        ),
    ),
]

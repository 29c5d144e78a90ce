# Quotes lines of fairseq 0.12.2, Copyright (c) Facebook, Inc. and its affiliates, MIT licence.
"""Mends of how fairseq composes its configuration with hydra 1.3 and omegaconf 2.3."""

from pathlib import Path

from fairseq_edits.edit import AddFile, Cut, Edit, Replace

_ADDED = Path(__file__).parent / "added"
_HYDRA_TRAIN = "fairseq_cli/hydra_train.py"
_MODEL_CONFIGS = (
    *(
        f"transformer_lm/transformer_lm_{size}"
        for size in ("baevski_gbw", "baevski_wiki103", "big", "gbw", "gpt", "gpt2_big", "gpt2_medium", "gpt2_small")
    ),
    "transformer_lm/transformer_lm_wiki103",
    "wav2vec/vq_wav2vec_gumbel",
    "wav2vec2/wav2vec2_base",
    "wav2vec2/wav2vec2_large",
)

EDITS = [
    Edit(
        "compose",
        "hydra.experimental is gone, and hydra 1.3 warns when version_base is not given or `strict` is",
        Replace(
            "fairseq/dataclass/utils.py",
            "from hydra.experimental import compose, initialize\n",
            "from hydra import compose, initialize\n",
        ),
        Replace(
            "fairseq/dataclass/utils.py",
            "    with initialize(config_path=config_path):\n",
            '    with initialize(config_path=config_path, version_base="1.3"):\n',
        ),
        Replace(
            "fairseq/dataclass/utils.py",
            '            composed_cfg = compose("config", overrides=overrides, strict=False)\n',
            '            composed_cfg = compose("config", overrides=overrides)\n'
            "            OmegaConf.set_struct(composed_cfg, False)\n",
        ),
    ),
    Edit(
        "package-header",
        "hydra 1.1+ warns about the keyword _group_ in a package header, which is what it does without one",
        Replace("fairseq/config/config.yaml", "# @package _group_\n", "# @package _global_\n"),
        *(Replace(f"fairseq/config/model/{name}.yaml", "# @package _group_\n", "") for name in _MODEL_CONFIGS),
    ),
    Edit(
        "schema",
        "hydra 1.1+ warns when a configuration is checked against a schema only because the two have the same name",
        Replace(
            "fairseq/config/config.yaml", "defaults:\n    - _self_\n", "defaults:\n    - fairseq_schema\n    - _self_\n"
        ),
        Replace(
            "fairseq/dataclass/initialize.py",
            """\
def hydra_init(cfg_name="config") -> None:

    cs = ConfigStore.instance()
    cs.store(name=f"{cfg_name}", node=FairseqConfig)
""",
            """\
def hydra_init(cfg_name="fairseq_schema") -> None:

    cs = ConfigStore.instance()
    cs.store(name=f"{cfg_name}", node=FairseqConfig)
""",
        ),
    ),
    Edit(
        "hydra-train",
        "fairseq-hydra-train composed its configuration before it imported common.user_dir, so a plugin's models, "
        "tasks and criterions were unknown to it; a relative user_dir broke once hydra had changed the folder",
        AddFile("fairseq/hydra_start.py", _ADDED / "hydra_start.py"),
        Cut(
            _HYDRA_TRAIN,
            "def cli_main():\n",
            'if __name__ == "__main__":\n',
            """\
@tells_user_errors
def cli_main():
    arguments = get_args()
    config_path = find_primary_config(arguments, os.path.dirname(__file__))
    primary = load_primary_config(config_path) if config_path is not None else None

    user_dir = find_user_dir(arguments.overrides, primary)
    if user_dir is not None:
        utils.import_user_module(argparse.Namespace(user_dir=user_dir))
        # absolute, because hydra may change the folder and because workers import it again
        quoted = os.path.abspath(user_dir).replace("'", "\\\\'")
        sys.argv.append(f"++common.user_dir='{quoted}'")

    if primary is not None:
        sys.argv.append(
            "--config-name=" + store_with_schema(arguments.config_name or "config", primary)
        )
    elif (arguments.config_name or "config") != "config":
        hydra_init(arguments.config_name)  # a configuration that only hydra can find

    # as in hydra 1.0, a run happens in its own folder (hydra.run.dir) unless hydra.job.chdir says otherwise
    own = HydraConf()
    own.job.chdir = True
    ConfigStore.instance().store(group="hydra", name="config", node=own, provider="fairseq")

    hydra_main()


""",
        ),
        Replace(
            _HYDRA_TRAIN,
            '@hydra.main(config_path=os.path.join("..", "fairseq", "config"), config_name="config")\n'
            "def hydra_main(cfg: FairseqConfig) -> float:\n"
            "    _hydra_main(cfg)\n",
            """\
@hydra.main(
    config_path=os.path.join("..", "fairseq", "config"),
    config_name="config",
    version_base="1.3",
)
def hydra_main(cfg: FairseqConfig) -> float:
    return tells_user_errors(_hydra_main)(cfg)
""",
        ),
        Replace(
            _HYDRA_TRAIN, "import logging\nimport os\n", "import argparse\nimport logging\nimport os\nimport sys\n"
        ),
        Replace(
            _HYDRA_TRAIN,
            "from hydra.core.hydra_config import HydraConfig\n",
            "from hydra._internal.utils import get_args\n"
            "from hydra.conf import HydraConf\n"
            "from hydra.core.config_store import ConfigStore\n"
            "from hydra.core.hydra_config import HydraConfig\n",
        ),
        Replace(
            _HYDRA_TRAIN,
            "from fairseq import distributed_utils, metrics\n",
            "from fairseq import distributed_utils, metrics, utils\n",
        ),
        Replace(
            _HYDRA_TRAIN,
            "from fairseq.utils import reset_logging\n",
            "from fairseq.hydra_start import (\n"
            "    find_primary_config,\n    find_user_dir,\n    load_primary_config,\n    store_with_schema,\n)\n"
            "from fairseq.user_error import tells_user_errors\n"
            "from fairseq.utils import reset_logging\n",
        ),
    ),
    Edit(
        "optional-packages",
        "every command began with advice to install a package that only speech tasks use",
        Replace(
            "fairseq/tasks/text_to_speech.py",
            """\
    logger.info("Please install tensorboardX: pip install tensorboardX")
    SummaryWriter = None
""",
            """\
    SummaryWriter = None
""",
        ),
    ),
]

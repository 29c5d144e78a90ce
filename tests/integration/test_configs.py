"""The runs of the WMT14 recipes as YAML: the same configuration, key by key, as the shell scripts give."""

import json
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import PLUGIN, Corpus, run
from fairseq import options
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from omegaconf import OmegaConf

EXAMPLES = Path(__file__).parents[2] / "examples"
RUNS = {f"{pair}_{size}": (pair, size) for pair in ("wmt14_en_de", "wmt14_en_fr") for size in ("base", "big")}
# Section 5 and 6.1 and Table 3, in fairseq's words.
PAPER = {
    "base": {"optimization.max_update": 100_000, "model.d_model": 512, "model.d_ff": 2048, "model.num_heads": 8},
    "big": {"optimization.max_update": 300_000, "model.d_model": 1024, "model.d_ff": 4096, "model.num_heads": 16},
}
DROPOUT = {"wmt14_en_de_base": 0.1, "wmt14_en_de_big": 0.3, "wmt14_en_fr_base": 0.1, "wmt14_en_fr_big": 0.1}
CHECKPOINTS = {"base": (1500, 5), "big": (600, 20)}
# What follows from the machine, the text and the folder, and the name of the architecture that holds the sizes.
APART = {
    "task.data",
    "checkpoint.save_dir",
    "common.tensorboard_logdir",
    "dataset.max_tokens",
    "dataset.max_tokens_valid",
    "optimization.update_freq",
    "model._name",
}
# Training neither searches nor scores, so YAML leaves fairseq's defaults there; hydra has its own log.
UNUSED = ("generation.", "scoring", "job_logging_cfg.")
COMPOSE = """
import json, sys
import fairseq_cli.hydra_train as hydra_train
from omegaconf import OmegaConf
user_dir, output, *names = sys.argv[1:]
found = {}
hydra_train.pre_main = lambda cfg: found.update({name: OmegaConf.to_container(cfg)})
for name in names:
    sys.argv = ["fairseq-hydra-train", "--config-dir", f"{user_dir}/configs", "--config-name", name,
                f"common.user_dir={user_dir}", "task.data=/binary", f"hydra.run.dir={output}.runs"]
    hydra_train.cli_main()
json.dump(found, open(output, "w"))
"""


def flat(value: Any, path: str = "") -> "dict[str, Any]":
    if isinstance(value, dict):
        return {key: leaf for name, item in value.items() for key, leaf in flat(item, f"{path}.{name}").items()}
    return {path[1:]: value}


@pytest.fixture(scope="module")
def composed(tmp_path_factory: pytest.TempPathFactory) -> "dict[str, dict[str, Any]]":
    """What fairseq-hydra-train would train, by the name of the YAML file."""
    output = tmp_path_factory.mktemp("hydra") / "composed.json"
    run("python", "-c", COMPOSE, PLUGIN, output, *RUNS, cwd=output.parent)
    return {name: flat(config) for name, config in json.loads(output.read_text()).items()}


def shell(corpus: Corpus, folder: Path, commands: "dict[str, str]", pair: str, size: str) -> "list[str]":
    """The words of the fairseq-train command that the recipe would run on a prepared text."""
    target = pair[-2:]
    (folder / "steps").mkdir(parents=True)
    (folder / "steps" / "binarise").write_text("done\n")
    (folder / "binary").mkdir()
    for file in corpus.binary.iterdir():
        shutil.copy(file, folder / "binary" / file.name.replace("en-de", f"en-{target}").replace(".de", f".{target}"))
    command = ["bash", str(EXAMPLES / pair / "train.sh"), size, "--dry-run"]
    done = subprocess.run(command, env={**commands, "WORK": str(folder)}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return shlex.split(done.stdout.strip().split("\n")[-1])


@pytest.mark.parametrize("name", RUNS)
def test_yaml_and_shell_recipe_are_the_same_run(
    corpus: Corpus,
    composed: "dict[str, dict[str, Any]]",
    commands_at_once: "dict[str, str]",
    tmp_path: Path,
    name: str,
) -> None:
    pair, size = RUNS[name]
    command = shell(corpus, tmp_path, commands_at_once, pair, size)
    assert command[0] == "fairseq-train"
    arguments = options.parse_args_and_arch(options.get_training_parser(), input_args=command[1:])
    ours = flat(OmegaConf.to_container(convert_namespace_to_omegaconf(arguments)))
    theirs = composed[name]
    keys = {key for key in ours.keys() | theirs.keys() if key not in APART and not key.startswith(UNUSED)}
    missing = object()
    different = {
        key: (ours.get(key), theirs.get(key)) for key in keys if ours.get(key, missing) != theirs.get(key, missing)
    }
    assert not different, json.dumps(different, indent=2)
    assert len(keys) > 200

    assert ours["model._name"].startswith("vaswani_")
    assert theirs["model._name"] == "vaswani_transformer"
    assert ours["checkpoint.save_dir"] == str(tmp_path / size / "checkpoints")
    assert theirs["task.data"] == "/binary"
    expected = {**PAPER[size], "model.dropout": DROPOUT[name], "task.target_lang": pair[-2:]}
    expected["checkpoint.save_interval_updates"], expected["checkpoint.keep_interval_updates"] = CHECKPOINTS[size]
    assert {key: theirs[key] for key in expected} == expected
    # 8 GPUs of 4,096 tokens with padding: the released code's batch, which has about 25,000 tokens without it.
    assert (theirs["dataset.max_tokens"], theirs["optimization.update_freq"]) == (4096, [1])

"""Settings of a stranger's, in a checkpoint or in YAML, are values: nothing evaluates them or makes calls of them."""

import argparse
import ast
import importlib.util
import re
import shutil
import tarfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml
from conftest import PLUGIN
from fairseq import file_utils, hydra_start, utils
from fairseq.plain_value import plain_value
from fairseq.user_error import UserError
from hostile_files import code_for, make_folder
from in_process import call, generate, refusal
from stored_run import CHECKPOINT, MODEL, binarise

from vaswani_plugin import cli

# Some models of fairseq's whose settings are texts that were evaluated, and one such setting of each.
EVALUATED = {
    "fconv": "encoder_layers",
    "fconv_self_att": "encoder_layers",
    "wav2vec2": "conv_feature_layers",
}


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return binarise(tmp_path_factory.mktemp("settings"))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("[(512, 3)] * 2 + [(1024, 1)]", [(512, 3), (512, 3), (1024, 1)]),
        ("2 * [(4, 4)]", [(4, 4), (4, 4)]),
        ("(0.9, 1e-3)", (0.9, 0.001)),
        ("0.5*2e-3", 0.001),
        ("-1 / 4", -0.25),
        ("2**10 // 3", 341),
        ("True", True),
        ("None", None),
        ("{'a': [1, 'b'], 2: (3,)}", {"a": [1, "b"], 2: (3,)}),
        (" 7 ", 7),
        ("2.0**64", 2.0**64),
    ],
)
def test_plain_values_are_pythons(text: str, value: Any) -> None:
    found = plain_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    "text",
    [
        *("__import__('os').getpid()", "open('x')", "x", "[1][0]", "(lambda: 1)()", "[i for i in (1, 2)]", "f'{1}'"),
        *(
            "1 if 2 else 3",
            "[] and []",
            "1 < 2",
            "[1] * 10**9",
            "'a' * 10",
            "9**9**9",
            "1 << 99",
            "'a' 'b' + 'c'",
            "1 /",
        ),
        *("", "(" * 500, "-" * 100_000 + "1", "[" * 100_000, "1\n2", "b'1'", "...", "{**{}}", "{[]: 1}", "[*(1, 2)]"),
        *("True + 1", "[1] + (2,)", "1 / 0", "1j", "\0"),
    ],
    ids=lambda text: repr(text[:20]),
)
def test_all_else_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(UserError, match="is not a plain value such as") as caught:
        plain_value(text)
    assert "\n" not in str(caught.value)


def test_fairseqs_readers_of_values_use_it(tmp_path: Path) -> None:
    witness = tmp_path / "witness"
    for read in (utils.eval_str_list, utils.eval_str_dict, utils.eval_bool):
        with pytest.raises(UserError):
            read(code_for(witness))
    assert utils.eval_str_list("[0.5, 1]") == [0.5, 1.0]
    assert utils.eval_str_list("3", type=int) == [3]
    assert utils.eval_str_dict("{'a': 1}") == {"a": 1}
    assert (utils.eval_bool("True"), utils.eval_bool("0"), utils.eval_bool(True, default=False)) == (True, False, False)
    assert not witness.exists()


@pytest.mark.parametrize(("model", "old"), [*((model, False) for model in EVALUATED), ("fconv", True)])
def test_settings_of_a_checkpoint(binary: Path, tmp_path: Path, model: str, old: bool) -> None:
    state, witness = torch.load(CHECKPOINT, weights_only=True), tmp_path / "witness"
    settings = {"_name": model, EVALUATED[model]: code_for(witness)}
    if old:
        task = {"task": "translation", "data": str(binary), "source_lang": "en", "target_lang": "de"}
        state.update(cfg=None, args=argparse.Namespace(arch=model, **settings, **task))
    else:
        state["cfg"]["model"] = {**state["cfg"]["model"], **settings}
    torch.save(state, tmp_path / "evil.pt")
    sentence = refusal(generate(binary, tmp_path / "evil.pt", status=1), "fairseq-generate")
    assert sentence.endswith("is not a plain value such as 0.1, True or [(512, 3)] * 2, so it was not evaluated")
    assert not witness.exists()


# --- configurations in YAML ------------------------------------------------------------------------------------------

CALLS = {
    "callback": "hydra: {{callbacks: {{evil: {{_target_: os.mkdir, path: {witness}}}}}}}",
    "handler": "hydra: {{job_logging: {{handlers: {{evil: {{class: os.mkdir, path: {witness}}}}}}}}}",
    "factory": "hydra: {{hydra_logging: {{version: 1, handlers: {{evil: {{(): os.mkdir, path: {witness}}}}}}}}}",
    "launcher": "hydra: {{sweeper: {{params: {{evil: {{_target_: os.mkdir, path: {witness}}}}}}}}}",
    "elsewhere": "model: {{_target_: os.mkdir, path: {witness}}}\nhydra: {{callbacks: {{one: '${{model}}'}}}}",
}


@pytest.mark.parametrize("kind", CALLS)
def test_hydra_calls_nothing_that_yaml_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "evil.yaml").write_text(CALLS[kind].format(witness=tmp_path / "witness") + "\n")
    done = call("fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "evil", status=1)
    assert "which names code to run" in refusal(done, "fairseq-hydra-train")
    assert not (tmp_path / "witness").exists()


def test_yaml_makes_no_objects(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    for tag in ("object/apply:os.mkdir", "object/new:os.mkdir", "name:os.mkdir", "module:os"):
        path.write_text(f"evil: !!python/{tag} [{tmp_path / 'witness'}]\n")
        with pytest.raises(UserError, match=r"config\.yaml is not a usable configuration"):
            hydra_start.load_primary_config(str(path))
    path.write_text(f"evil: !!python/object/apply:os.mkdir [{tmp_path / 'witness'}]\n")
    assert not (tmp_path / "witness").exists()
    yaml.unsafe_load(path.read_text())  # the file does hold a call
    assert (tmp_path / "witness").exists()


def test_a_configuration_cannot_bring_a_checkpoint_that_runs_code(
    binary: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    state = torch.load(CHECKPOINT, weights_only=True)
    torch.save({**state, "extra": make_folder(tmp_path / "witness")}, tmp_path / "evil.pt")
    settings = {
        "common": {"user_dir": str(PLUGIN), "cpu": True},
        "task": {"_name": "vaswani_translation", "data": str(binary)},
        "model": {"_name": "vaswani_transformer", "num_layers": 1, "d_model": 8, "d_ff": 16, "num_heads": 2},
        "criterion": {"_name": "vaswani_label_smoothing"},
        "optimizer": {"_name": "adam"},
        "lr_scheduler": {"_name": "vaswani_inverse_sqrt"},
        "dataset": {"max_tokens": 200, "num_workers": 0},
        "optimization": {"max_update": 1},
    }
    (tmp_path / "evil.yaml").write_text(yaml.safe_dump(settings))
    for place in ("restore_file", "finetune_from_model"):
        done = call(
            *("fairseq-hydra-train", "--config-dir", tmp_path, "--config-name", "evil"),
            *(f"checkpoint.save_dir={tmp_path / 'save'}", f"checkpoint.{place}={tmp_path / 'evil.pt'}"),
            *(f"hydra.run.dir={tmp_path / 'run'}", "hydra/job_logging=none", "hydra/hydra_logging=none"),
            status=1,
        )
        assert "nothing in it was run: it holds posix.mkdir" in done.last_line
        assert not (tmp_path / "witness").exists()


# --- what all of this rests on ---------------------------------------------------------------------------------------

# Places that may do what no other one may: the safe loader, and what workers of one run send each other.
EXCEPTED = {
    "torch.load": {"fairseq/safe_load.py", "vaswani_plugin/checkpoints/reading.py"},
    "pickle.loads": {"fairseq/distributed/utils.py"},
}
DANGEROUS = re.compile(
    r"eval|exec|compile|__import__|torch\.load|(cP|_p|p)ickle\.loads?|(cP|p)ickle\.Unpickler|marshal\.loads?|yaml\.load"
    r"|yaml\.(full|unsafe)_load|joblib\.load|os\.system|os\.popen|np\.fromregex|shelve\.open|dill\.loads?"
)


def sources() -> "Iterator[tuple[str, Path]]":
    for package in ("fairseq", "fairseq_cli", "vaswani_plugin"):
        spec = importlib.util.find_spec(package)
        assert spec is not None
        assert spec.submodule_search_locations
        folder = Path(next(iter(spec.submodule_search_locations)))
        for path in sorted(folder.rglob("*.py")):
            yield f"{package}/{path.relative_to(folder)}", path


def calls(text: str) -> "Iterator[tuple[str, ast.Call]]":
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call):
            yield ast.unparse(node.func), node


def test_nothing_in_fairseq_and_the_plugin_runs_what_it_reads() -> None:
    found = []
    for name, path in sources():
        text = path.read_text("utf-8")
        if not re.search(rf"\b({DANGEROUS.pattern})\(|allow_pickle|shell=|trust_remote_code|extractall", text):
            continue
        for function, node in calls(text):
            keywords = {word.arg: ast.unparse(word.value) for word in node.keywords}
            if DANGEROUS.fullmatch(function) and name not in EXCEPTED.get(function, ()):
                found.append((name, function))
            if keywords.keys() & {"allow_pickle", "trust_remote_code"}:
                found.append((name, function))
            if function.endswith("extractall") and keywords.get("filter") != "'data'":
                found.append((name, function))
            if keywords.get("shell") == "True" and "shlex.quote" not in ast.unparse(node):
                found.append((name, function))
    assert found == []


def test_an_archive_stays_in_its_folder(tmp_path: Path) -> None:
    path = tmp_path / "models" / "model.tar.gz"
    path.parent.mkdir()
    with tarfile.open(path, "w:gz") as archive:
        member = tarfile.TarInfo("../../outside")
        member.size = 1
        archive.addfile(member, BytesIO(b"x"))
    with pytest.raises(tarfile.FilterError):
        file_utils.load_archive_file(str(path))
    assert list(tmp_path.rglob("outside")) == []


def test_json_nested_without_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In a run's scores, in its log, in a model's folder."""
    nested = '{"a": ' * 100_000
    (tmp_path / "score.json").write_text(nested)
    (tmp_path / "train.log").write_text(f"2026-01-01 00:00:00 | INFO | train | {nested}\n")
    assert cli.main(["report", str(tmp_path)]) == 0
    assert "score.json is not JSON" in (tmp_path / "report.html").read_text("utf-8")
    folder = Path(shutil.copytree(MODEL, tmp_path / "model"))
    (folder / "model.json").write_text(nested)
    capsys.readouterr()
    assert cli.main(["translate", str(folder)]) == 1
    assert capsys.readouterr().err == (
        f"vaswani translate: {folder / 'model.json'} is damaged: restore the file, or package the model again\n"
    )

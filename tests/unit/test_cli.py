"""The vaswani command: exit statuses, streams and JSON."""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import vaswani_plugin
from vaswani_plugin import cli
from vaswani_plugin.commands import COMMANDS
from vaswani_plugin.data.vocabulary import make_vocabulary


def run(*arguments, **settings):
    command = [sys.executable, "-m", "vaswani_plugin", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **settings)


def write(path, lines):
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    make_vocabulary([write(folder / "text", ["the small house stands in the garden"] * 20)], 300, folder / "joint")
    return folder / "joint.model"


def test_user_dir_is_the_package_folder():
    result = run("user-dir")
    assert result.returncode == 0
    assert result.stdout == f"{Path(vaswani_plugin.__file__).parent}\n"


@pytest.mark.parametrize("tool", [command.NAME for command in COMMANDS])
def test_help_shows_an_example(tool, capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main([tool, "--help"])
    assert exit_.value.code == 0
    (example,) = re.findall(r"^example: (.+)$", capsys.readouterr().out, re.MULTILINE)
    before, found, after = example.partition(f"vaswani {tool}")
    assert found
    if not before:  # user-dir stands inside of another command
        arguments = [word for word in shlex.split(after, comments=True) if word[0] not in "<>"]
        assert cli._parser().parse_args([tool, *arguments]).tool == tool


def test_every_flag_is_explained():
    (tools,) = (action for action in cli._parser()._actions if action.dest == "tool")
    for name, parser in tools.choices.items():
        for action in parser._actions:
            assert action.help or action.choices, f"{name} {action.dest}"


def test_help_tells_the_exit_statuses(capsys):
    with pytest.raises(SystemExit) as exit_:
        cli.main(["--help"])
    assert exit_.value.code == 0
    assert re.findall(r"\b(\d+) [a-z]", capsys.readouterr().out.split("Exit status: ")[1]) == [
        *("0", "1", "2", "130", "141")
    ]


def test_usage_errors_are_2(capsys):
    for arguments in ([], ["unknown"], ["score", "--hypothesis", "x"], ["vocabulary", "--size", "many", "x"]):
        with pytest.raises(SystemExit) as exit_:
            cli.main(arguments)
        assert exit_.value.code == 2
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["score", "--hypothesis", "no.txt", "--reference", "no.txt"], "no.txt: No such file or directory"),
        (["score", "--hypothesis", ".", "--reference", "."], ".: Is a directory"),
        (["clean", "--source", "no.en", "--target", "no.de", "--output", "x"], "no.en: No such file or directory"),
        (["vocabulary", "--size", "300", "--output", "x", "no.txt"], "no.txt: No such file or directory"),
        (["encode", "--model", "no.model", "no.txt"], "no.model: there is no such SentencePiece model; "),
        (["average", "no.pt", "--last", "5", "--output", "x"], "--last and --by choose from a folder, but no.pt is "),
        (["average", ".", "--output", "x"], ". is a folder: give it alone, with --last N "),
    ],
)
def test_errors_are_one_line_and_1(arguments, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert cli.main(arguments) == 1
    captured = capsys.readouterr()
    assert captured.err.startswith(f"vaswani {arguments[0]}: {message}")
    assert captured.err.count("\n") == 1
    assert captured.out == ""
    assert list(tmp_path.iterdir()) == []


def test_clean_prints_its_report(tmp_path, capsys):
    source, target = write(tmp_path / "a.en", ["one", "two\rx", ""]), write(tmp_path / "a.de", ["eins", "zwei", "x"])
    arguments = ["clean", "--source", str(source), "--target", str(target), "--output", str(tmp_path / "b")]
    assert cli.main([*arguments, "--max-ratio", "2"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("3 pairs read\n")
    assert f"{source}: 1 line with lone carriage return (0x0D): 2\n" in text
    assert cli.main([*arguments, "--max-ratio", "2", "--json"]) == 0
    summary = json.loads(capsys.readouterr().out)
    assert (summary["pairs"], summary["kept"], summary["removed"]["blank"]) == (3, 2, 1)
    assert summary["findings"][str(source)]["carriage_return"] == {"count": 1, "lines": [2]}


def test_vocabulary_and_score_print_json(tmp_path, capsys):
    text = write(tmp_path / "text", ["the small house stands in the garden"] * 20)
    prefix = str(tmp_path / "joint")
    assert cli.main(["vocabulary", "--size", "290", "--output", prefix, "--json", str(text)]) == 0
    assert json.loads(capsys.readouterr().out)["lines"] == 20
    assert (tmp_path / "joint.dict.txt").read_bytes().count(b"\n") == 290 - 4
    assert cli.main(["score", "--hypothesis", str(text), "--reference", str(text), "--json"]) == 0
    scores = json.loads(capsys.readouterr().out)
    assert scores["sacrebleu"]["score"] == pytest.approx(100)
    assert set(scores["sacrebleu"]) == {"score", "signature", "hyp_len", "ref_len"}


def test_encode_between_pipes(model):
    result = run("encode", "--model", model, input="the house\n\nthe garden")
    assert result.returncode == 0
    lines = result.stdout.split("\n")
    assert [line.replace(" ", "") for line in lines] == ["\u2581the\u2581house", "", "\u2581the\u2581garden", ""]
    assert "encode:" not in result.stderr


def test_a_reader_that_leaves_is_no_error(tmp_path, model):
    text = write(tmp_path / "text", ["the house"] * 200_000)
    command = (
        f"'{sys.executable}' -m vaswani_plugin encode --model '{model}' '{text}' | head -n 1; echo ${{PIPESTATUS[0]}}"
    )
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert result.stdout.replace(" ", "") == "\u2581the\u2581house\n141\n"
    assert "Error" not in result.stderr
    assert "Traceback" not in result.stderr


def test_interrupt_is_130_and_leaves_nothing(tmp_path, model):
    output = tmp_path / "out"
    command = [sys.executable, "-m", "vaswani_plugin", "encode", "--model", str(model), "--output", str(output)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdin.write(b"the house\n")
        process.stdin.flush()
        # The first line has been encoded when the temporary file has text in it.
        while process.poll() is None and not any(file.stat().st_size for file in tmp_path.iterdir()):
            time.sleep(0.05)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate()
    assert process.returncode == 130
    assert b"Traceback" not in errors
    assert list(tmp_path.iterdir()) == []

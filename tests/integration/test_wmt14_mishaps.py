"""The WMT14 recipes when something comes between: an interruption, a wrong archive, a mistake in the call."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
import wmt14_mirror
from archive_server import serving
from wmt14_recipe import PREPARE, Recipe, steps


def test_french_from_a_server_after_an_interruption(commands_at_once: "dict[str, str]", tmp_path: Path) -> None:
    """Years' folders, an interruption in the middle of a file, UN's and giga-fren's layouts, a lone CR in a line."""
    years = wmt14_mirror.build(tmp_path / "years", years=True)
    files = {str(path.relative_to(years)): path.read_bytes() for path in years.rglob("*") if path.is_file()}
    with serving(files) as server:
        recipe = Recipe("wmt14_en_fr", tmp_path / "work", server.address, commands_at_once)
        server.stands_still_after = 2000
        command, settings = recipe.command("prepare.sh")
        part = recipe.work / "archives" / "wmt13" / "training-parallel-europarl-v7.tgz.part"
        with subprocess.Popen(
            command, env=settings, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        ) as process:
            for _ in range(600):
                if part.exists():
                    break
                time.sleep(0.05)
            os.killpg(process.pid, signal.SIGINT)
            output = process.communicate(timeout=60)[0]
        assert process.returncode == 130, output
        assert "interrupted; run it again to go on from here" in output
        assert "Traceback" not in output
        server.stands_still_after = None
        server.goes_on.set()
        left = part.stat().st_size
        done = recipe.run("prepare.sh")
        assert steps(done.stdout) == dict.fromkeys(PREPARE, "run")
        europarl = [wanted for path, wanted in server.requests if path.endswith("europarl-v7.tgz")]
        assert europarl[-1] == (f"bytes={left}-" if left else None)
    total = sum(wmt14_mirror.PAIRS.values()) - sum(wmt14_mirror.REMOVED.values())
    assert len(recipe.lines("clean/train.fr")) == len(recipe.lines("encoded/train.en")) == total
    log = (recipe.work / "binary" / "preprocess.log").read_text()
    assert len(re.findall(rf"train\.(?:en|fr): {total} sents, \d+ tokens, 0\.0% replaced", log)) == 2
    giga = [english for english, _ in wmt14_mirror.sentences(wmt14_mirror.PAIRS["giga"], "giga", "fr")]
    assert recipe.lines("text/train.en")[-len(giga) :] == giga


def test_a_wrong_archive_stops_prepare_and_the_right_one_goes_on(
    commands_at_once: "dict[str, str]", tmp_path: Path
) -> None:
    copy = tmp_path / "mirror"
    wmt14_mirror.build(copy)
    whole = (copy / "dev.tgz").read_bytes()
    (copy / "dev.tgz").write_bytes(whole[: len(whole) // 2])
    recipe = Recipe("wmt14_en_de", tmp_path / "work", str(copy), commands_at_once)
    refused = recipe.run("prepare.sh", status=1)
    found = re.search(r"wmt14: .*/dev.tgz has the sha256 sum (\w{64}), but (\w{64}) is expected: ", refused.stderr)
    assert found
    assert found[1] != found[2]
    # The sum now fits the truncated file, which cannot be unpacked.
    wmt14_mirror.write_sums(copy)
    refused = recipe.run("prepare.sh", status=1)
    assert re.search(r"wmt14: .*/dev.tgz is damaged or cut off", refused.stderr)
    assert steps(refused.stdout) == {"download": "run"}
    assert not (recipe.work / "text" / "train.en").exists()


@pytest.mark.parametrize(
    ("script", "words", "environment", "message"),
    [
        ("prepare.sh", [], {"VOCAB_SIZE": "many"}, "VOCAB_SIZE=many is not a whole number of at least 1"),
        ("prepare.sh", [], {"WMT14_MIRROR": "/no/such"}, "WMT14_MIRROR=/no/such is neither a folder nor an address"),
        ("train.sh", [], {}, "usage: train.sh base|big [--dry-run]"),
        ("train.sh", ["huge"], {}, "'huge' is neither base nor big, the two models of the paper"),
        ("train.sh", ["base"], {}, "prepare.sh has not been run to its end in "),
        ("train.sh", ["base"], {"NNODES": "2"}, "NNODES=2 needs MASTER_ADDR"),
        ("evaluate.sh", [], {}, "train.sh has not been run to its end in "),
    ],
)
def test_mistakes_end_in_a_sentence(
    commands_at_once: "dict[str, str]",
    tmp_path: Path,
    script: str,
    words: "list[str]",
    environment: "dict[str, str]",
    message: str,
) -> None:
    recipe = Recipe("wmt14_en_de", tmp_path / "work", "", commands_at_once)
    assert message in recipe.run(script, *words, status=1, **environment).stderr

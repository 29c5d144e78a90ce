"""The mended fairseq through its real commands, with stock architectures only: none of this needs the plugin."""

import re
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable, Iterator

import pytest
import torch
from conftest import Corpus, Result, run
from port_fixtures import PLUGIN, stop_training, train

WARNING = re.compile(r"warning|deprecated", re.IGNORECASE)


def warnings_in(log: str) -> "list[str]":
    return [line for line in log.split("\n") if WARNING.search(line) and "| INFO |" not in line]


def weights(checkpoint: Path) -> "dict[str, torch.Tensor]":
    return torch.load(checkpoint, weights_only=False)["model"]


def logged(log: str, tag: str, name: str) -> "list[float]":
    """The values of ``name`` on the lines of ``tag`` in a simple log."""
    lines = [line for line in log.split("\n") if f"| INFO | {tag} |" in line]
    return [float(re.search(rf"\b{name}[ =]([\d.]+)", line).group(1)) for line in lines]  # type: ignore[union-attr]


class Runs:
    """The trainings of this module, two at a time; ``name`` is also the folder of the checkpoints."""

    def __init__(self, corpus: Corpus, folder: Path, pool: ThreadPoolExecutor) -> None:
        self.folder = folder
        self._futures: dict[str, Future[Any]] = {}
        two = ("--no-epoch-checkpoints", "--dropout", 0, "--max-update", 6)
        torchrun = ("torchrun", "--standalone", "--nproc_per_node", 2)

        def start(name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> None:
            self._futures[name] = pool.submit(function, corpus.binary, folder / name, *arguments, **options)

        # every fifth update is also the last of its epoch
        start("straight", train, "--max-update", 12, "--save-interval-updates", 5, installed=True)
        start("ddp", train, "--distributed-backend", "gloo", *two, launcher=torchrun)
        start("spawned", train, "--distributed-world-size", 2, "--ddp-backend", "legacy_ddp", *two)
        start("accumulated", train, "--update-freq", 2, *two)
        start("bf16", train, "--bf16", "--max-update", 2, "--no-epoch-checkpoints")
        start("stopped", self._stop_and_resume)

    def _stop_and_resume(self, binary: Path, save: Path) -> "tuple[int, str, Result]":
        log = self.folder / "stopped.log"
        every = 10**6
        endless = ("--max-update", every, "--save-interval", every, "--validate-interval", every)
        status = stop_training(binary, save, *endless, after="num_updates=3,", log=log)
        reached = int(re.findall(r"SIGTERM after update (\d+)", log.read_text())[-1])
        straight = self.folder / "straight_to_the_same"
        train(binary, straight, "--max-update", reached + 2, "--no-epoch-checkpoints")
        resumed = train(binary, save, "--max-update", reached + 2, "--no-epoch-checkpoints")
        return status, f"{reached}", resumed

    def __getitem__(self, name: str) -> Any:
        return self._futures[name].result()


@pytest.fixture(scope="module")
def runs(corpus: Corpus, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    with ThreadPoolExecutor(max_workers=2) as pool:
        yield Runs(corpus, tmp_path_factory.mktemp("port"), pool)


def generate(corpus: Corpus, checkpoint: Path, *extra: Any, **options: Any) -> Result:
    command = ("fairseq-generate", corpus.binary, "--path", checkpoint, "--cpu", "--no-progress-bar", "--beam", 2)
    return run(*command, "--max-len-b", 10, *extra, **options)


# --- training --------------------------------------------------------------------------------------------------------


def test_training_warns_of_nothing_and_reaches_its_last_update(runs: Runs) -> None:
    log = runs["straight"].output
    assert warnings_in(log) == []
    assert logged(log, "train_inner", "num_updates") == list(range(1, 13))


def test_an_interval_checkpoint_is_written_at_an_epoch_end_too(runs: Runs) -> None:
    log = runs["straight"].output
    folder = runs.folder / "straight"
    assert "end of epoch 1" in log
    names = {path.name for path in folder.iterdir()}
    last_of_epochs = [int(number) for number in logged(log, "train", "num_updates")]
    assert last_of_epochs[:2] == [5, 10]
    assert {"checkpoint1.pt", "checkpoint_1_5.pt", "checkpoint_2_10.pt", "checkpoint_last.pt"} <= names
    assert (folder / "checkpoint1.pt").read_bytes() == (folder / "checkpoint_1_5.pt").read_bytes()
    assert not [name for name in names if not name.endswith(".pt")]


def test_the_encoder_layer_keeps_no_copies_of_its_weights(runs: Runs) -> None:
    """16 * 24 shared embeddings; per attention 4 * (16*16 + 16), feed-forward 2*16*32 + 32 + 16, LayerNorm 2 * 16."""
    runs["straight"]
    model = weights(runs.folder / "straight" / "checkpoint_last.pt")
    counted = {k: v for k, v in model.items() if "version" not in k and "_float_tensor" not in k}
    attention, feed_forward, norm = 4 * (16 * 16 + 16), 2 * 16 * 32 + 32 + 16, 2 * 16
    layers = (attention + feed_forward + 2 * norm) + (2 * attention + feed_forward + 3 * norm)
    # the embedding matrix is saved under three names
    assert sum(value.numel() for value in counted.values()) == 3 * 24 * 16 + layers


@pytest.mark.parametrize("name", ["ddp", "spawned"])
def test_two_workers_make_the_updates_of_one_that_accumulates(runs: Runs, name: str) -> None:
    """Five batches an epoch: the second worker has none for the last update, as one worker's last update has one."""
    log = runs[name].output
    runs["accumulated"]
    assert warnings_in(log) == []
    alone = weights(runs.folder / "accumulated" / "checkpoint_last.pt")
    together = weights(runs.folder / name / "checkpoint_last.pt")
    assert together.keys() == alone.keys()
    for key, value in alone.items():
        torch.testing.assert_close(together[key], value, rtol=1e-4, atol=1e-5, msg=key)


def test_bf16_trains_on_cpu_near_the_losses_of_float32(runs: Runs) -> None:
    log = runs["bf16"].output
    assert warnings_in(log) == []
    exact = logged(runs["straight"].output, "train_inner", "loss")[:2]
    assert logged(log, "train_inner", "loss") == pytest.approx(exact, rel=0.03)
    # checkpoints hold float32; what was trained in bfloat16 survives the way there and back
    for value in weights(runs.folder / "bf16" / "checkpoint_last.pt").values():
        assert torch.equal(value, value.bfloat16().float())


def test_sigterm_ends_training_with_a_checkpoint_that_resumes_bit_for_bit(runs: Runs) -> None:
    status, reached, resumed = runs["stopped"]
    assert status == 143
    assert f"@ {reached} updates" in resumed.output
    straight = torch.load(runs.folder / "straight_to_the_same" / "checkpoint_last.pt", weights_only=False)
    stopped = torch.load(runs.folder / "stopped" / "checkpoint_last.pt", weights_only=False)
    for key, value in straight["model"].items():
        assert torch.equal(value, stopped["model"][key]), key
    moments = [state["last_optimizer_state"]["state"] for state in (straight, stopped)]
    for index, moment in moments[0].items():
        assert torch.equal(moment["exp_avg_sq"], moments[1][index]["exp_avg_sq"])


def test_fp16_without_a_gpu_is_a_sentence(corpus: Corpus, tmp_path: Path) -> None:
    done = train(corpus.binary, tmp_path, "--fp16", status=1)
    assert done.last_line == "fairseq-train: error: --fp16 needs a GPU; on CPU use --bf16 or --memory-efficient-fp16"
    assert "Traceback" not in done.output


# --- the other commands ----------------------------------------------------------------------------------------------


def test_validate_finds_the_loss_that_training_logged(corpus: Corpus, runs: Runs) -> None:
    expected = logged(runs["straight"].output, "valid", "loss")[-1]
    checkpoint = runs.folder / "straight" / "checkpoint_last.pt"
    done = run("fairseq-validate", corpus.binary, "--path", checkpoint, "--max-tokens", 200, "--cpu")
    assert logged(done.output, "valid", "loss") == [expected]


def test_generate_and_interactive_agree_and_count_lines_at_line_feeds(corpus: Corpus, runs: Runs) -> None:
    """Other characters that some tools take for a line end stand between words here; tokens are the same."""
    runs["straight"]
    checkpoint = runs.folder / "straight" / "checkpoint_last.pt"
    generated = generate(corpus, checkpoint)
    assert warnings_in(generated.output) == []
    hypotheses = dict(re.findall(r"^H-(\d+)\t(.*)$", generated.output, re.MULTILINE))
    assert sorted(map(int, hypotheses)) == list(range(15))

    sources = (corpus.raw / "test.en").read_text().split("\n")[:3]
    ends = ["\r", "\u2028", "\u0085", "\x0b", "\x0c"]
    text = "".join(ends[i % 5].join(line.split()) + "\n" for i, line in enumerate(sources)) + "\n"
    command = ("fairseq-interactive", corpus.binary, "--path", checkpoint, "--cpu", "--beam", 2, "--max-len-b", 10)
    done = run(*command, stdin=text)
    assert warnings_in(done.output) == []
    assert re.findall(r"^S-(\d+)\t(.*)$", done.output, re.MULTILINE) == [
        *((str(i), line) for i, line in enumerate(sources)),
        ("3", ""),
    ]
    translated = dict(re.findall(r"^H-(\d+)\t(.*)$", done.output, re.MULTILINE))
    for i in "012":
        (score, words), (other_score, other_words) = (h[i].split("\t") for h in (hypotheses, translated))
        assert (other_words, float(other_score)) == (words, pytest.approx(float(score), abs=1e-4))


@pytest.mark.parametrize("workers", [1, 3])
def test_preprocess_counts_lines_at_line_feeds(tmp_path: Path, workers: int) -> None:
    from fairseq.data import Dictionary, data_utils

    source = b"a b\rc\nd \xe2\x80\xa8 e\nf\x0bg\x0ch\xc2\x85i\n\nj\r\n"
    (tmp_path / "x.en").write_bytes(source)
    (tmp_path / "x.de").write_bytes(b"a\nb\nc\n\nd\n")
    destination = tmp_path / "binary"
    command = ("fairseq-preprocess", "-s", "en", "-t", "de", "--trainpref", tmp_path / "x", "--destdir", destination)
    log = run(*command, "--workers", workers).output
    assert "x.en: 5 sents, 15 tokens" in log
    assert "x.de: 5 sents, 9 tokens" in log
    dictionary = Dictionary.load(str(destination / "dict.en.txt"))
    dataset = data_utils.load_indexed_dataset(str(destination / "train.en-de.en"), dictionary)
    lines = [dictionary.string(tokens) for tokens in dataset]
    assert lines == ["a b c", "d e", "f g h i", "", "j"]


def test_score_refuses_files_of_different_length(tmp_path: Path) -> None:
    (tmp_path / "system").write_text("a b c d e\nf\n")
    (tmp_path / "reference").write_text("a b c d e\nf\ng\n")
    files = ("--sys", tmp_path / "system", "--ref", tmp_path / "reference")
    done = run("fairseq-score", *files, status=1)
    assert done.last_line.endswith("has 2 lines but " + str(files[3]) + " has 3; they must match line by line")


def test_hydra_train_knows_the_plugin_of_its_configuration(corpus: Corpus, tmp_path: Path) -> None:
    (tmp_path / "toy_plugin").mkdir()
    (tmp_path / "toy_plugin" / "__init__.py").write_text(PLUGIN)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "toy.yaml").write_text(f"""\
common: {{user_dir: toy_plugin, cpu: true}}
task: {{_name: translation, data: {corpus.binary}, source_lang: en, target_lang: de}}
model: {{_name: toy_model, encoder: {{layers: 1, embed_dim: 16}}, decoder: {{layers: 1, embed_dim: 16}}}}
criterion: {{_name: toy_criterion}}
optimizer: {{_name: adam}}
lr_scheduler: {{_name: fixed}}
dataset: {{max_tokens: 200, num_workers: 0}}
optimization: {{max_update: 2, lr: [0.001]}}
""")
    done = run("fairseq-hydra-train", "--config-dir", "conf", "--config-name", "toy", "hydra.run.dir=out", cwd=tmp_path)
    assert warnings_in(done.output) == []
    state = torch.load(tmp_path / "out" / "checkpoints" / "checkpoint_last.pt", weights_only=False)
    assert state["optimizer_history"][-1]["num_updates"] == 2
    assert state["optimizer_history"][-1]["criterion_name"] == "ToyCriterion"
    assert state["cfg"]["common"]["user_dir"] == str(tmp_path / "toy_plugin")

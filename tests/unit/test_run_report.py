"""The run report's parts: logs of any format and end, charts by coordinates, samples by sacreBLEU, broken runs."""

import json
import re
from pathlib import Path

import pytest
import reference
import sacrebleu

from vaswani_plugin import cli
from vaswani_plugin.report.charts import Series, chart, decades, short, thinned, ticks
from vaswani_plugin.report.curves import formula_points, learning_rate_chart
from vaswani_plugin.report.samples import Sample, read_samples, spread, worst
from vaswani_plugin.report.training_log import read_training_log

CONFIG = (
    "2026-01-02 03:04:05 | INFO | fairseq_cli.train | {'optimization': {'_name': None, 'max_update': 40, "
    "'lr': [0.25]}, 'model': {'_name': 'vaswani_tiny', 'd_model': 16, 'd_k': None, 'share_embeddings': all}, "
    "'lr_scheduler': {'_name': 'vaswani_inverse_sqrt', 'warmup_updates': 10, 'lr_factor': 0.5, 'lr': [0.25]}}\n"
)
COMMAND = (
    "2026-01-02 03:04:06 | INFO | vaswani_plugin.tasks.vaswani_translation | vaswani_plugin 9.8.7, torch 6.5, "
    "2 CPU cores; started as: fairseq-train 'my data' --arch <b>\n"
)


def rate(update: int) -> float:
    return 0.5 * reference.learning_rate(update, 16, 10)


def inner(update: int, loss: float, seconds: int = 10) -> str:
    values = {"epoch": 1, "loss": loss, "nll_loss": loss - 1, "ppl": 2 ** (loss - 1), "wps": 1000.0}
    values |= {"num_updates": update, "lr": f"{rate(update + 1):.6g}"}
    text = json.dumps({name: str(value) for name, value in values.items()})
    return f"2026-01-02 03:04:{seconds} | INFO | train_inner | {text}\n"


def valid(update: int, loss: float, bleu: float) -> str:
    values = {"valid_loss": loss, "valid_ppl": 2.0, "valid_bleu": bleu, "valid_num_updates": update}
    return f"2026-01-02 03:04:20 | INFO | valid | {json.dumps(values)}\n"


LOG = CONFIG + COMMAND + inner(10, 9.0) + inner(20, 8.0) + valid(20, 8.5, 12.5) + inner(30, 7.0) + inner(40, 6.0)
DONE = "2026-01-02 03:05:00 | INFO | fairseq_cli.train | done training in 50.0 seconds\n"
GENERATED = (
    "2026-01-02 03:04:05 | INFO | fairseq_cli.generate | {'_name': None}\n"
    "S-1\tthe <b>dog\nT-1\tder Hund\nH-1\t-0.5\t▁der ▁Hund\nD-1\t-0.5\tder Hund\n"
    "H-1\t-0.9\t▁ein ▁Hund\nD-1\t-0.9\tein Hund\nP-1\t-0.1 -0.2\n"
    "S-0\ta cat\nT-0\teine Katze\nH-0\t-1.5\t▁ein ▁Kater\nD-0\t-1.5\tein Kater\n"
    "S-2\tno translation yet\nT-2\tnoch nichts\n"
)


@pytest.fixture
def log(tmp_path: Path):
    def read(text: str):
        (tmp_path / "train.log").write_text(text, "utf-8")
        return read_training_log(tmp_path / "train.log")

    return read


def test_a_json_log(log) -> None:
    read = log(LOG + DONE)
    assert [(entry["num_updates"], entry["loss"], entry["nll_loss"]) for entry in read.training] == [
        (10, 9, 8),
        (20, 8, 7),
        (30, 7, 6),
        (40, 6, 5),
    ]
    assert [(entry["num_updates"], entry["loss"], entry["bleu"]) for entry in read.validation] == [(20, 8.5, 12.5)]
    assert (read.finished, read.updates, read.max_update, read.remarks) == (True, 40, 40, [])
    assert (read.first_time, read.last_time) == ("2026-01-02 03:04:05", "2026-01-02 03:05:00")
    assert read.versions == "vaswani_plugin 9.8.7, torch 6.5, 2 CPU cores"
    assert read.command == "fairseq-train 'my data' --arch <b>"
    assert read.model == {"_name": "vaswani_tiny", "d_model": "16", "d_k": "None", "share_embeddings": "all"}


def test_the_simple_format_says_the_same(log) -> None:
    """Lines as fairseq 0.12.2 writes them with --log-format simple."""
    read = log(
        CONFIG
        + "2026-01-02 03:04:10 | INFO | train_inner | epoch 001:    100 / 132 loss=8.5, nll_loss=7.5, ppl=181.02, "
        "wps=2048.5, ups=1.1, wpb=1843.6, bsz=120, num_updates=100, lr=0.000123, gnorm=1.4, train_wall=80, wall=90\n"
        "2026-01-02 03:04:20 | INFO | valid | epoch 005 | valid on 'valid' subset | loss 6.598 | nll_loss 5.511 | "
        "ppl 45.6 | bleu 9.81 | wps 1351.4 | wpb 2067.6 | bsz 126.8 | num_updates 660 | best_loss 6.598\n"
    )
    assert read.training == [
        {"loss": 8.5, "nll_loss": 7.5, "ppl": 181.02, "wps": 2048.5, "ups": 1.1, "wpb": 1843.6, "bsz": 120}
        | {"num_updates": 100, "lr": 0.000123, "gnorm": 1.4, "train_wall": 80, "wall": 90}
    ]
    assert read.validation == [
        {"loss": 6.598, "nll_loss": 5.511, "ppl": 45.6, "bleu": 9.81, "wps": 1351.4, "wpb": 2067.6, "bsz": 126.8}
        | {"num_updates": 660, "best_loss": 6.598}
    ]


def test_a_line_that_is_being_written_is_left_for_later(log) -> None:
    read = log(LOG + inner(50, 5.0)[:90])
    assert log(LOG.replace('"num_updates": "40"', '"num_updates": "nan"')).updates == 30
    assert read.updates == 40
    assert not read.finished


def test_after_a_crash_and_a_resumption_the_later_line_counts(log) -> None:
    crash = "Traceback (most recent call last):\n  File x\nRuntimeError: the disk is full\n"
    broken = log(LOG + crash)
    assert broken.remarks == crash.strip().split("\n")
    resumed = log(LOG + crash + CONFIG + inner(30, 7.25) + inner(40, 6.25) + DONE)
    assert [entry["loss"] for entry in resumed.training] == [9, 8, 7.25, 6.25]
    assert (resumed.finished, resumed.remarks) == (True, [])


def test_layers_of_the_model_are_no_trouble_but_warnings_are(log) -> None:
    layers = "2026-01-02 03:04:07 | INFO | fairseq_cli.train | Model(\n  (encoder): Encoder()\n)\n"
    warning = "2026-01-02 03:04:08 | WARNING | fairseq.trainer | gradient overflow\n"
    assert log(CONFIG + layers + warning + inner(10, 9.0)).remarks == [warning.strip()]


def test_the_formula_is_the_papers(log) -> None:
    read = log(LOG)
    points = formula_points(read, [10, 20, 30, 40])
    assert points == [(n, pytest.approx(rate(n + 1), rel=1e-12)) for n in (10, 20, 30, 40)]
    assert "the logged rates agree with it" in learning_rate_chart(read)
    read.training[1]["lr"] *= 1.25
    assert "the logged rates differ by up to 25.0%" in learning_rate_chart(read)
    read.schedule["_name"] = "inverse_sqrt"
    assert formula_points(read, [10]) == []


def test_ticks_are_round_and_enclose() -> None:
    assert ticks(3.2, 11.9, 4) == [0, 5, 10, 15]
    assert ticks(0, 1300, 4) == [0, 500, 1000, 1500]
    assert ticks(5, 5, 4)[0] <= 5 <= ticks(5, 5, 4)[-1]
    assert decades(13, 4000) == [10, 100, 1000, 10000]
    assert decades(13, 90) == [10, 20, 50, 100]
    assert [short(value) for value in (0, 1500, 2e6, 0.25, 0.0002)] == ["0", "1.5k", "2M", "0.25", "2e-4"]


def test_thinning_takes_means() -> None:
    assert thinned([(n, n % 2) for n in range(600)], most=300) == [(2 * n + 1, 0.5) for n in range(300)]
    assert thinned([(1, 2.0)]) == [(1, 2.0)]
    assert thinned([]) == []


def coordinates(svg: str) -> list[tuple[float, float]]:
    return [tuple(map(float, pair.split(","))) for pair in re.search(r'points="([^"]+)"', svg)[1].split()]


def test_points_lie_where_their_numbers_say() -> None:
    """The plot's corners are (46, 8) and (390, 206); ticks run from 0 to 100 and from 0 to 4."""
    places = coordinates(chart("x", [Series("a", [(0, 0.0), (50, 1.0), (100, 4.0)])]))
    assert places == [(46, 206), (218, 156.5), (390, 8)]
    places = coordinates(chart("x", [Series("a", [(0, 1.0), (50, 10.0), (100, 100.0)])], logarithmic=True))
    assert places == [(46, 206), (218, 107), (390, 8)]


def test_numbers_that_are_none_are_counted_not_drawn() -> None:
    svg = chart("x", [Series("a", [(1, 2.0), (2, float("nan")), (3, float("inf")), (4, 3.0)])])
    assert len(coordinates(svg)) == 2
    assert "2 logged values are not finite numbers" in svg
    assert "Nothing logged yet" in chart("x", [Series("a", [])])


def test_samples_are_the_best_translations_with_sacrebleus_chrf(tmp_path: Path) -> None:
    (tmp_path / "generate.txt").write_text(GENERATED, "utf-8")
    samples = read_samples(tmp_path / "generate.txt")
    assert [(one.number, one.source, one.reference, one.translation) for one in samples] == [
        (0, "a cat", "eine Katze", "ein Kater"),
        (1, "the <b>dog", "der Hund", "der Hund"),
    ]
    assert samples[0].chrf == pytest.approx(sacrebleu.sentence_chrf("ein Kater", ["eine Katze"]).score)
    assert samples[1].chrf == pytest.approx(100)


def test_samples_left_in_pieces_are_joined(tmp_path: Path) -> None:
    (tmp_path / "generate.txt").write_text("S-0\t▁a ▁c at\nT-0\t▁Ka tze\nH-0\t-1\t▁Ka ter\n", "utf-8")
    (sample,) = read_samples(tmp_path / "generate.txt")
    assert (sample.source, sample.reference, sample.translation) == ("a cat", "Katze", "Kater")


def test_choice_of_samples() -> None:
    samples = [Sample(number, "", "", "", float((number * 7) % 100)) for number in range(100)]
    assert [one.number for one in spread(samples, 4)] == [12, 37, 62, 87]
    assert spread(samples[:3], 4) == samples[:3]
    assert [one.chrf for one in worst(samples, 3)] == [0, 1, 2]


def report(folder: Path, capsys: pytest.CaptureFixture) -> str:
    assert cli.main(["report", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'report.html'}\n"
    return (folder / "report.html").read_text("utf-8")


def test_a_run_that_has_just_started(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "train.log").write_text(CONFIG, "utf-8")
    page = report(tmp_path, capsys)
    assert "No update logged yet; the log's last line is of 2026-01-02 03:04:05." in page
    assert "Nothing logged yet." in page
    assert "No score.json yet." in page


def test_a_run_that_has_crashed(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "train.log").write_text(LOG + "RuntimeError: <the disk> is full\n", "utf-8")
    (tmp_path / "score.json").write_text("{", "utf-8")
    (tmp_path / "checkpoint_last.pt").write_bytes(b"half a file")
    (tmp_path / "generate.txt").write_text(GENERATED, "utf-8")
    page = report(tmp_path, capsys)
    assert "40 of 40 updates; the log's last line is of 2026-01-02 03:04:10." in page
    assert "<details open>" in page
    assert "RuntimeError: &lt;the disk&gt; is full" in page
    assert "score.json is not JSON" in page
    assert "checkpoint_last.pt is not a whole checkpoint" in page
    assert "the &lt;b&gt;dog" in page
    assert "fairseq-train &#x27;my data&#x27; --arch &lt;b&gt;" in page
    assert "<b>dog" not in page


def test_scores_and_bleu_of_checkpoints(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    (tmp_path / "train.log").write_text(LOG + valid(40, 7.5, 20.25) + DONE, "utf-8")
    scores = {"sacrebleu": {"score": 16.456, "signature": "nrefs:1"}, "training": {"updates": 4}, "last": [1]}
    (tmp_path / "score.json").write_text(json.dumps(scores), "utf-8")
    page = report(tmp_path, capsys)
    assert "Finished after 40 updates" in page
    assert "<td>sacrebleu</td><td>16.46</td><td>nrefs:1</td>" in page
    assert "at each validation: from 12.5 at update 20 to 20.25 at update 40." in page


@pytest.mark.parametrize("name", ["nowhere", "empty", "foreign"])
def test_folders_without_a_run(name: str, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    folder = tmp_path / name
    if name != "nowhere":
        folder.mkdir()
    if name == "foreign":
        (folder / "notes.txt").write_text("milk")
        (folder / "server.log").write_bytes(b"\xff\x00started\n")
    before = sorted(tmp_path.rglob("*"))
    assert cli.main(["report", str(folder)]) == 1
    errors = capsys.readouterr().err
    missing = "is not a folder" if name == "nowhere" else "has nothing of a training run"
    assert errors.startswith(f"vaswani report: {folder} {missing}")
    assert errors.count("\n") == 1
    assert sorted(tmp_path.rglob("*")) == before

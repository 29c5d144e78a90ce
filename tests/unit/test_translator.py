"""VaswaniTransformer.from_pretrained and the stream of vaswani translate, on a small model trained here."""

import io
import shutil
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
import torch
from fairseq.hub_utils import GeneratorHubInterface
from small_run import make_run, sentences

from vaswani_plugin.errors import UserError
from vaswani_plugin.inference import translator as translator_module
from vaswani_plugin.inference.line_stream import translate_stream
from vaswani_plugin.inference.translator import batches_by_length
from vaswani_plugin.models.vaswani_transformer import VaswaniTransformer


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_run(tmp_path_factory.mktemp("run"), steps=120)


def load(run: Path, **settings: Any) -> Any:
    return VaswaniTransformer.from_pretrained(
        run / "checkpoints",
        checkpoint_file="checkpoint_last.pt",
        data_name_or_path=run / "binary",
        **{"bpe": "sentencepiece", "sentencepiece_model": str(run / "joint.model"), **settings},
    )


@pytest.fixture(scope="module")
def translator(run: Path) -> Any:
    return load(run)


def test_it_is_fairseqs_interface_with_the_papers_search(translator: Any) -> None:
    assert isinstance(translator, GeneratorHubInterface)
    assert not translator.training
    generation = translator.cfg.generation
    assert (generation.beam, generation.max_len_a, generation.max_len_b, generation.min_len) == (4, 1, 50, 0)
    (hypothesis, *others) = translator.generate(translator.encode("the small house"))
    assert len(others) == 3
    length = len(hypothesis["tokens"])
    log_p = float(hypothesis["positional_scores"].sum())
    assert float(hypothesis["score"]) == pytest.approx(log_p / ((5 + length) / 6) ** 0.6, rel=1e-5)
    assert translator.decode(hypothesis["tokens"]) == translator.translate("the small house")


def test_settings_reach_the_search(run: Path, translator: Any) -> None:
    flat = load(run, length_penalty_alpha=0.0)
    hypothesis = flat.generate(flat.encode("a red horse"))[0]
    assert float(hypothesis["score"]) == pytest.approx(float(hypothesis["positional_scores"].sum()), rel=1e-5)
    assert len(translator.generate(translator.encode("a red horse"), beam=2)) == 2
    assert len(load(run, beam=3).generate(translator.encode("a red horse"))) == 3
    longer = translator.translate("a", min_len=5)
    assert len(translator.encode(longer)) >= 6
    with pytest.raises(UserError, match="bean is not a setting of fairseq's search"):
        translator.translate("a red horse", bean=5)


def test_order_is_kept_and_batches_do_not_matter(translator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = [*sentences(40, seed=3), "", "  \u2028 ", "the"]
    together = translator.translate(lines)
    assert together[40:42] == ["", ""]
    assert len(set(together)) > 20
    assert together == [translator.translate(line) for line in lines]
    monkeypatch.setattr(translator_module, "BATCH_TOKENS", 30)
    assert translator.translate(lines) == together
    assert translator.translate([]) == []


def test_batches_are_of_like_length_and_within_the_limits() -> None:
    lengths = [3, 9000, 5, 1, *[7] * 600, 2, 30]
    batches = list(batches_by_length(lengths))
    assert sorted(row for batch in batches for row in batch) == list(range(len(lengths)))
    assert batches[0] == [1]
    for batch in batches[1:]:
        assert len(batch) <= 128
        assert len(batch) * max(lengths[row] for row in batch) <= 4096
    order = [lengths[row] for batch in batches for row in batch]
    assert order == sorted(lengths, reverse=True)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no GPU")
def test_a_gpu_translates_alike(run: Path, translator: Any) -> None:
    lines = [*sentences(30, seed=4), ""]
    on_gpu = load(run).cuda()
    same = [a == b for a, b in zip(on_gpu.translate(lines), translator.translate(lines), strict=True)]
    assert sum(same) >= 29
    scores = [on_gpu.score("a red horse", "ein Pferd"), translator.score("a red horse", "ein Pferd")]
    assert float(scores[0]["score"]) == pytest.approx(float(scores[1]["score"]), abs=1e-3)


def test_any_text_goes_in_and_one_line_comes_out(translator: Any) -> None:
    lines = ["\r", "a\rb", "Ω \U0001f600 ▁", "a\0b", "<unk> </s>", "x" * 300]
    assert all("\n" not in text for text in translator.translate(lines))


def test_scores_of_given_translations(translator: Any) -> None:
    pairs = [("the small house", "das kleine Haus"), ("a", "ein rotes Pferd sieht"), ("every child", "")]
    scored = translator.score([source for source, _ in pairs], [target for _, target in pairs])
    for (source, target), hypothesis in zip(pairs, scored):
        tokens = translator.encode(target)
        shifted = torch.cat([tokens[-1:], tokens[:-1]])
        with torch.no_grad():
            logits, _ = translator.models[0](translator.encode(source)[None], None, shifted[None])
        expected = logits[0].log_softmax(-1).gather(1, tokens[:, None])[:, 0]
        torch.testing.assert_close(hypothesis["positional_scores"], expected, atol=1e-5, rtol=1e-5)
        assert float(hypothesis["score"]) == pytest.approx(float(expected.mean()), abs=1e-5)
    assert translator.score("a", "ein")["tokens"].tolist() == translator.encode("ein").tolist()
    with pytest.raises(UserError, match="2 sentences cannot be scored with 1 translations"):
        translator.score(["a", "b"], ["ein"])


def test_sentences_that_cannot_be_translated(translator: Any) -> None:
    with pytest.raises(UserError, match=r"sentence 2 of 2 has 10,021 tokens with </s>, more than the model's 10,000"):
        translator.translate(["a", "the " * 10_020])
    unknown = torch.tensor([translator.src_dict.unk(), translator.src_dict.unk(), translator.src_dict.eos()])
    assert "has no piece that the model's dictionary knows" in translator.refusal(unknown)
    assert translator.refusal(unknown[1:]) is not None
    assert translator.refusal(unknown[2:]) is None


class Source(io.BytesIO):
    """A pipe whose writer pauses after each part; says what had come out before each was read."""

    def __init__(self, parts: list[bytes], output: io.BytesIO) -> None:
        self.parts, self.output, self.seen = parts, output, []

    def read1(self, size: "int | None" = -1) -> bytes:
        self.seen.append(self.output.getvalue().count(b"\n"))
        return self.parts.pop(0) if self.parts else b""


def test_stream_answers_at_once_and_line_by_line(translator: Any) -> None:
    output = io.BytesIO()
    source = Source([b"the house\n", b"a\n\n \nan un", b"finished line"], output)
    translate_stream(translator, source, output, notice=pytest.fail)
    assert source.seen == [0, 1, 4, 4]
    texts = translator.translate(["the house", "a", "", "", "an unfinished line"])
    assert output.getvalue().decode() == "".join(f"{text}\n" for text in texts)


def test_stream_shows_the_first_lines_of_a_large_file_early(translator: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []
    monkeypatch.setattr(
        translator, "decode_best", lambda encoded, beam: sizes.append(len(encoded)) or [""] * len(encoded)
    )
    output = io.BytesIO()
    translate_stream(translator, io.BytesIO(b"a\n" * 9000), output, notice=pytest.fail)
    assert sizes == [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 824]
    assert output.getvalue() == b"\n" * 9000


def test_stream_keeps_the_lines_that_it_cannot_translate(translator: Any) -> None:
    notices: list[str] = []
    output = io.BytesIO()
    source = io.BytesIO(b"the house\nbad \xff byte\n" + b"the " * 10_020 + b"\na\n")
    with pytest.raises(UserError, match=r"^1 of 4 lines could not be translated, and are empty in the output$"):
        translate_stream(translator, source, output, notices.append)
    expected = translator.translate(["the house", "bad \ufffd byte", "a"])
    assert output.getvalue().decode().split("\n") == [*expected[:2], "", expected[2], ""]
    assert notices[0] == "line 2 is not UTF-8; U+FFFD stands for what cannot be read"
    assert notices[1].startswith("line 3 has 10,021 tokens with </s>, more than")


def folder_without(run: Path, tmp_path: Path, *names: str) -> Path:
    copy = tmp_path / "copy"
    shutil.copytree(run, copy)
    for name in names:
        (copy / name).unlink()
    return copy


@pytest.mark.parametrize(
    ("missing", "message"),
    [
        (["checkpoints/checkpoint_last.pt"], "checkpoints has no checkpoint_last.pt: name the checkpoint"),
        (["joint.model"], "joint.model: there is no such SentencePiece model"),
        (["binary/dict.de.txt"], "dict.de.txt: there is no such file"),
        (["binary/train.en-de.en.idx", "binary/train.en-de.de.idx"], r"binary .*the languages"),
    ],
)
def test_a_missing_file_is_named(run: Path, tmp_path: Path, missing: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message) as error:
        load(folder_without(run, tmp_path, *missing))
    assert "\n" not in str(error.value)


def test_missing_folders_are_named(run: Path, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"nowhere is not a folder: give the folder of a model"):
        VaswaniTransformer.from_pretrained(tmp_path / "nowhere")
    with pytest.raises(UserError, match=r"has no model\.pt: name the checkpoint with checkpoint_file, or make"):
        VaswaniTransformer.from_pretrained(run)
    with pytest.raises(
        UserError, match=r"nothing is not a folder: data_name_or_path is where fairseq-preprocess wrote"
    ):
        VaswaniTransformer.from_pretrained(run / "checkpoints", "checkpoint_last.pt", tmp_path / "nothing")


def test_a_dictionary_of_another_size_is_refused(run: Path, tmp_path: Path) -> None:
    copy = folder_without(run, tmp_path)
    for language in ("en", "de"):
        path = copy / "binary" / f"dict.{language}.txt"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-10]))
    with pytest.raises(UserError, match=r"385 and 385 entries, this run dictionaries of 375 and 375") as error:
        load(copy)
    assert "\n" not in str(error.value)


def test_a_model_of_another_task_is_refused(run: Path, tmp_path: Path) -> None:
    copy = folder_without(run, tmp_path)
    path = copy / "checkpoints" / "checkpoint_last.pt"
    with torch.serialization.safe_globals([Namespace]):
        state = torch.load(path, weights_only=True)
    state["cfg"]["task"] = {
        name: value
        for name, value in state["cfg"]["task"].items()
        if name not in ("length_penalty_alpha", "mixed_precision", "int8")
    }
    state["cfg"]["task"]["_name"] = "translation"
    torch.save(state, path)
    with pytest.raises(UserError, match="was trained with --task translation, not vaswani_translation"):
        load(copy)

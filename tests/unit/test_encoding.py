"""Encoding whole files."""

import gzip
import io
import os
import subprocess
import sys

import pytest

from vaswani_plugin.data import text_files
from vaswani_plugin.data.encoding import encode_file, encode_files
from vaswani_plugin.data.segmentation import Segmentation
from vaswani_plugin.data.vocabulary import make_vocabulary

LINES = ["the house", "", "a\u2028b \r c", "  ", "\u2581 mark", "the last line"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    (folder / "text").write_text("the small house stands in the garden\n" * 20)
    make_vocabulary([folder / "text"], 300, folder / "joint")
    return Segmentation(folder / "joint.model")


def encoded_one_by_one(model):
    return "".join(f"{model.encode(line)}\n" for line in LINES).encode()


def test_one_line_for_each_line_in_order(tmp_path, model, monkeypatch):
    # Blocks of 5 bytes, so that lines and characters are cut in the middle.
    monkeypatch.setattr(text_files, "_BLOCK_BYTES", 5)
    (tmp_path / "in").write_bytes("\n".join(LINES).encode())
    assert encode_file(model, tmp_path / "in", tmp_path / "out") == len(LINES)
    result = (tmp_path / "out").read_bytes()
    assert result == encoded_one_by_one(model)
    assert result.split(b"\n")[1] == b""


def test_gzip_is_known_by_its_content(tmp_path, model):
    (tmp_path / "in").write_bytes(gzip.compress("\n".join(LINES).encode()))
    encode_file(model, tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").read_bytes() == encoded_one_by_one(model)


def test_damaged_gzip_leaves_no_output(tmp_path, model):
    packed = gzip.compress(os.urandom(100_000).hex().encode())
    (tmp_path / "in").write_bytes(packed[:-1000])
    with pytest.raises(ValueError, match="damaged or cut off"):
        encode_file(model, tmp_path / "in", tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in"]


def test_bad_line_is_named_and_the_old_output_stays(tmp_path, model):
    (tmp_path / "in").write_bytes(b"fine\nalso fine\nK\xe4se\n")
    (tmp_path / "out").write_text("old")
    with pytest.raises(ValueError, match=r"in, line 3: not valid UTF-8 \(byte 0xE4 at position 2\)"):
        encode_file(model, tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "out"]


def test_output_through_a_link_and_to_a_device(tmp_path, model):
    (tmp_path / "in").write_text("the house\n")
    (tmp_path / "target").write_text("old")
    (tmp_path / "link").symlink_to("target")
    encode_file(model, tmp_path / "in", tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "target").read_text() == model.encode("the house") + "\n"
    encode_file(model, tmp_path / "in", os.devnull)
    assert not os.path.isfile(os.devnull)


def test_output_has_ordinary_permissions(tmp_path, model):
    (tmp_path / "in").write_text("the house\n")
    encode_file(model, tmp_path / "in", tmp_path / "out")
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "in").stat().st_mode


def test_several_files_go_to_a_folder_under_their_names(tmp_path, model):
    (tmp_path / "a.en").write_text("the house\n")
    (tmp_path / "b.en.gz").write_bytes(gzip.compress("\n".join(LINES).encode()))
    encode_files(model.model, [tmp_path / "a.en", tmp_path / "b.en.gz"], tmp_path / "encoded")
    assert {path.name: path.read_bytes() for path in (tmp_path / "encoded").iterdir()} == {
        "a.en": f"{model.encode('the house')}\n".encode(),
        "b.en": encoded_one_by_one(model),
    }
    with pytest.raises(ValueError, match="two of the files would have the same name"):
        encode_files(model.model, [tmp_path / "a.en", tmp_path / "encoded" / "a.en"], tmp_path / "encoded")
    with pytest.raises(ValueError, match="give --output FOLDER, and no - among the files"):
        encode_files(model.model, [tmp_path / "a.en", tmp_path / "b.en.gz"], "-")


def test_a_pipe_gets_each_line_as_it_arrives(model):
    command = [sys.executable, "-m", "vaswani_plugin", "encode", "--model", str(model.model)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for line in LINES:
            process.stdin.write(f"{line}\n".encode())
            process.stdin.flush()
            # Waits for ever, and fails by the time limit, should the tool hold the line back.
            assert process.stdout.readline() == f"{model.encode(line)}\n".encode()
        process.stdin.close()
        assert process.stdout.read() == b""
    assert process.returncode == 0


def test_blocks_end_at_line_feeds_only():
    data = "a\rb\u2028c\u0085d\x0b\x0ce\x1cf\n\n\r\nlast".encode()
    blocks = list(text_files.blocks_of_lines(io.BytesIO(data)))
    assert [line for block in blocks for line in block] == data.split(b"\n")
    assert list(text_files.blocks_of_lines(io.BytesIO(b"x\n"))) == [[b"x"]]
    assert list(text_files.blocks_of_lines(io.BytesIO(b""))) == []

"""What is around a command: memory, disk, a reader or writer at the other end of a pipe."""

import errno
import os
import re
import subprocess

import pytest
import torch
from conftest import PLUGIN, Corpus, Run
from port_fixtures import bin_path


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (MemoryError(), "there is not enough memory; give a smaller --max-tokens, --batch-size or --beam"),
        (RuntimeError("CUDA out of memory. Tried"), "there is not enough memory; give a smaller --max-tokens, "),
        (IsADirectoryError(errno.EISDIR, "Is a directory", "data"), "data: Is a directory"),
        (PermissionError(errno.EACCES, "Permission denied", "data"), "data: Permission denied"),
        (FileNotFoundError(errno.ENOENT, "No such file", "data"), "there is no file data"),
        (OSError(errno.ENOSPC, "No space left on device"), "a file could not be written: No space left on device"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else "",
)
def test_one_sentence_and_status_1(error: Exception, sentence: str, capsys: pytest.CaptureFixture[str]) -> None:
    from fairseq.user_error import tells_user_errors

    @tells_user_errors
    def command() -> None:
        raise error

    with pytest.raises(SystemExit) as end:
        command()
    assert end.value.code == 1
    assert f": error: {sentence}" in capsys.readouterr().err


def test_torch_that_lacks_memory_is_known_by_its_words() -> None:
    from fairseq.user_error import is_user_error

    with pytest.raises(RuntimeError) as caught:
        torch.empty(2**58, dtype=torch.uint8)
    assert is_user_error(caught.value)
    assert not is_user_error(RuntimeError("The size of tensor a (2) must match the size of tensor b (3)"))
    assert not is_user_error(OSError(errno.EIO, "Input/output error"))


def test_interrupts_and_readers_that_leave_are_no_errors(capsys: pytest.CaptureFixture[str]) -> None:
    from fairseq.user_error import tells_user_errors

    @tells_user_errors
    def command() -> None:
        raise KeyboardInterrupt

    with pytest.raises(SystemExit) as end:
        command()
    assert end.value.code == 130
    assert capsys.readouterr().err.endswith(": interrupted\n")


def test_an_answer_comes_before_the_next_line_is_given(corpus: Corpus, trained: Run) -> None:
    """A program that asks line by line; it then leaves without reading the rest, which is no error to tell."""
    words = [bin_path("fairseq-interactive"), corpus.binary, "--user-dir", PLUGIN, "--task", "vaswani_translation"]
    process = subprocess.Popen(
        [str(word) for word in [*words, "--path", trained.last, "--cpu"]],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        for number in range(3):
            process.stdin.write(b"w1 w2\n")
            process.stdin.flush()
            answer = next(line for line in process.stdout if line.startswith(b"P-"))
            assert re.match(rb"P-%d\t" % number, answer)
        process.stdout.close()
        process.stdin.write(b"w1 w2\n" * 3)
        process.stdin.close()
        assert process.wait(timeout=60) == 141
        log = process.stderr.read()
        assert b"Type the input sentence" in log
        assert not re.search(rb"Traceback|[Ee]rror|[Bb]roken", log)
    finally:
        process.kill()
        process.stderr.close()

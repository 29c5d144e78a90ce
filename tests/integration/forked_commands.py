"""Python and the commands of this environment from a process that has imported fairseq, which takes seconds each time.

A server forks for each command; what stands on PATH under the command's name hands it the arguments, the folder, the
environment and the three streams, and ends with the status that comes back. The plugin itself is imported anew.
The command is in the process group of what stands on PATH, so that a signal to the group reaches it as it would reach a
command of the usual kind; where that group is in another session, to which no process can go, SIGINT and SIGTERM are
handed on.
"""

import json
import multiprocessing.util
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
import types
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

NAMES = (
    *("fairseq-train", "fairseq-preprocess", "fairseq-generate", "fairseq-interactive", "fairseq-validate"),
    *("fairseq-hydra-train", "fairseq-score", "vaswani", "torchrun", "python"),
)

_CLIENT = """\
#!{python} -SE
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX)
server.connect({address!r})
request = {{"name": {name!r}, "arguments": sys.argv[1:], "folder": os.getcwd(), "environment": dict(os.environ)}}
request["group"] = os.getpgrp()
request["ignored"] = [n for n in (signal.SIGINT, signal.SIGTERM) if signal.getsignal(n) == signal.SIG_IGN]
socket.send_fds(server, [b" "], [0, 1, 2])
server.sendall(json.dumps(request).encode())
server.shutdown(socket.SHUT_WR)
command = int(server.recv(12) or 0)
for number in (signal.SIGINT, signal.SIGTERM):
    # The group's signals are the command's to answer, in this group itself, or handed on.
    joined = command < 0 or number in request["ignored"]
    signal.signal(number, signal.SIG_IGN if joined else lambda number, _: os.kill(command, number))
sys.exit(int(server.recv(8) or 1))
"""


@contextmanager
def forked_commands(folder: Path) -> "Iterator[dict[str, str]]":
    """Environment in which the commands are found; ``folder`` is for their files."""
    address = folder / "commands"
    server = subprocess.Popen(
        [sys.executable, __file__, address], env={**os.environ, "OMP_NUM_THREADS": "1"}, stdout=subprocess.PIPE
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n"
        for name in NAMES:
            path = folder / name
            path.write_text(_CLIENT.format(python=sys.executable, address=str(address), name=name))
            path.chmod(0o755)
        path_of_commands = os.pathsep.join([str(folder), str(Path(sys.executable).parent), os.environ["PATH"]])
        yield {**os.environ, "OMP_NUM_THREADS": "1", "PATH": path_of_commands}
    finally:
        server.terminate()
        server.communicate()


def serve(address: str) -> None:
    import fairseq_cli.generate
    import fairseq_cli.hydra_train
    import fairseq_cli.interactive
    import fairseq_cli.preprocess
    import fairseq_cli.train
    import fairseq_cli.validate  # noqa: F401
    import torch._dynamo  # every optimiser imports it when it is made
    import torch.distributed.run  # noqa: F401

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while True:
        connection, _ = listener.accept()
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            listener.close()
            answer(connection)
        connection.close()


def answer(connection: socket.socket) -> None:
    try:
        _, streams, _, _ = socket.recv_fds(connection, 1, 3)
        text = b"".join(iter(lambda: connection.recv(65536), b""))
        request = json.loads(text)
        connection.sendall(b"%12d" % (-os.getpid() if joined(request.pop("group")) else os.getpid()))
        for number in request.pop("ignored"):
            signal.signal(number, signal.SIG_IGN)
    except (ValueError, OSError):
        os._exit(0)  # what asked was killed meanwhile
    status = 1
    try:
        for number, stream in enumerate(streams):
            os.dup2(stream, number)
        # New objects, for what these had found out about the streams that they were made with.
        sys.stdin, sys.stdout = open(0, closefd=False), open(1, "w", closefd=False)
        sys.stderr = open(2, "w", errors="backslashreplace", closefd=False, buffering=1)
        status = call(**request)
    except BaseException:
        traceback.print_exc()
    finally:
        # As at a process's usual end: loaders' processes would look for their parent, and hold the streams, for 5 s.
        multiprocessing.util._exit_function()
        for file in (sys.stdout, sys.stderr):
            file.flush()
        connection.sendall(str(status).encode())
        os._exit(0)


def joined(group: int) -> bool:
    """Whether this process could go to the process group."""
    try:
        os.setpgid(0, group)
    except PermissionError:
        return False
    return True


def call(name: str, arguments: "list[str]", folder: str, environment: "dict[str, str]") -> int:
    """As the installed script of that name does; its exit status."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    try:
        code = python(arguments) if name == "python" else script(name, arguments)
    except SystemExit as error:
        code = error.code
    if isinstance(code, str):
        print(code, file=sys.stderr)
    return code if isinstance(code, int) else int(code is not None)


def script(name: str, arguments: "list[str]") -> Any:
    sys.argv = [name, *arguments]
    (entry,) = metadata.entry_points(group="console_scripts", name=name)
    return entry.load()()


def python(arguments: "list[str]") -> Any:
    """``python FILE``, ``-m MODULE`` or ``-c PROGRAM``; anything else is left to a new interpreter."""
    first, rest = arguments[0], arguments[1:]
    if first.startswith("-") and first not in ("-c", "-m"):
        return subprocess.call([sys.executable, *arguments])
    if first == "-c":
        sys.path.insert(0, "")
        sys.argv = ["-c", *rest[1:]]
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        exec(rest[0], main.__dict__)  # noqa: S102  what -c is for
    elif first == "-m":
        sys.path.insert(0, os.getcwd())
        sys.argv = rest
        runpy.run_module(rest[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(first).resolve().parent))
        sys.argv = arguments
        runpy.run_path(first, run_name="__main__")
    return 0


if __name__ == "__main__":
    sys.path.pop(0)  # this folder, which the installed scripts do not have there
    serve(sys.argv[1])

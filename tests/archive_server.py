"""A server of archives that can break off, be busy, redirect, lie about sizes, refuse ranges, or stand still."""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import SimpleNamespace


class Handler(BaseHTTPRequestHandler):
    """Serves ``behaviour.files`` with ranges; what goes wrong is in the server's ``behaviour``."""

    def do_HEAD(self) -> None:
        self.answer(body=False)

    def do_GET(self) -> None:
        self.answer(body=True)

    def answer(self, body: bool) -> None:
        behaviour, path = self.server.behaviour, self.path.lstrip("/")
        if body:
            behaviour.requests.append((path, self.headers.get("Range")))
        if path.startswith("moved/"):
            self.send_response(301)
            self.send_header("Location", "/" + path.removeprefix("moved/"))
            self.end_headers()
            return
        content = behaviour.files.get(path)
        if content is None:
            self.send_error(404)
            return
        if body and behaviour.busy > 0:
            behaviour.busy -= 1
            self.send_error(503)
            return
        start = 0
        if wanted := self.headers.get("Range"):
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if behaviour.ranges and start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.end_headers()
                return
            start = start if behaviour.ranges else 0
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(behaviour.pretended or len(content) - start))
        self.end_headers()
        if not body:
            return
        whole = content[start:]
        if path.endswith("europarl-v7.tgz") and behaviour.breaks > 0:
            behaviour.breaks -= 1
            whole = whole[: behaviour.sent]
        if behaviour.stands_still_after is not None and len(whole) > behaviour.stands_still_after:
            self.wfile.write(whole[: behaviour.stands_still_after])
            behaviour.goes_on.wait(60)
            return
        self.wfile.write(whole)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def serving(files: "dict[str, bytes]") -> Iterator[SimpleNamespace]:
    """Yields the behaviour to change, with the server's ``address`` and the ``requests`` that it got."""
    behaviour = SimpleNamespace(files=dict(files), requests=[], breaks=0, sent=0, busy=0, ranges=True, pretended=None)
    behaviour.stands_still_after, behaviour.goes_on = None, threading.Event()
    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    http.daemon_threads = True
    http.behaviour = behaviour  # type: ignore[attr-defined]
    behaviour.address = f"http://127.0.0.1:{http.server_port}"
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield behaviour
    behaviour.goes_on.set()
    http.shutdown()
    thread.join()
    http.server_close()


def sums(content: "dict[str, bytes]") -> bytes:
    return "".join(f"{hashlib.sha256(data).hexdigest()}  ./{name}\n" for name, data in content.items()).encode()

"""Two hosts on one machine: network namespaces that a pair of virtual network interfaces joins."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

_KEEP = ("sleep", "infinity")


class NoNamespaces(Exception):
    """This machine does not let its user make namespaces; the message says which step it refused."""


@dataclass
class Host:
    """A network of its own, kept by a sleeping process; user namespaces make it work without being root."""

    keeper: "subprocess.Popen[bytes]"
    address: str = ""
    interface: str = ""

    @property
    def namespaces(self) -> "list[str]":
        """The files that a process enters to be on this host, in this order."""
        return [f"/proc/{self.keeper.pid}/ns/{kind}" for kind in ("user", "net")]

    def command(self, *words: Any) -> "list[str]":
        """``words`` as a command on this host."""
        enter = ("nsenter", "--target", self.keeper.pid, "--user", "--net", "--preserve-credentials")
        return [str(word) for word in (*enter, *words)]

    def run(self, *words: Any) -> None:
        command = self.command(*words)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode != 0:
            raise NoNamespaces(f"{' '.join(map(str, words))}: {done.stdout.strip()}")


def _keep(*words: Any) -> Host:
    """A host whose keeper is what ``words`` start; it says a line once it is there."""
    command = [*map(str, words), "sh", "-c", f"echo ready; exec {' '.join(_KEEP)}"]
    try:
        keeper = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        raise NoNamespaces(f"{words[0]}: {error.strerror}") from error
    assert keeper.stdout is not None
    said = keeper.stdout.readline()
    if said != b"ready\n":
        _end(keeper)
        raise NoNamespaces(f"{words[0]}: {said.decode().strip()}")
    return Host(keeper)


def _end(keeper: "subprocess.Popen[bytes]") -> None:
    keeper.kill()
    keeper.wait()
    assert keeper.stdout is not None
    keeper.stdout.close()


@contextmanager
def two_hosts() -> "Iterator[tuple[Host, Host]]":
    """Two hosts that reach each other and nothing else, not even themselves by the name of this machine."""
    hosts: list[Host] = []
    try:
        hosts.append(_keep("unshare", "--user", "--map-root-user", "--net"))
        first = hosts[0]
        hosts.append(_keep(*first.command("unshare", "--net")))
        second = hosts[1]
        first.run("ip", "link", "add", "to-second", "type", "veth", "peer", "to-first", "netns", second.keeper.pid)
        for host, interface, address in ((first, "to-second", "10.99.0.1"), (second, "to-first", "10.99.0.2")):
            host.interface, host.address = interface, address
            host.run("ip", "address", "add", f"{address}/24", "dev", interface)
            host.run("ip", "link", "set", interface, "up")
            host.run("ip", "link", "set", "lo", "up")
        yield first, second
    finally:
        for host in hosts:
            _end(host.keeper)


@contextmanager
def hosts_or_skip() -> "Iterator[tuple[Host, Host]]":
    """The two hosts; the test that asks is skipped, with the reason, where the machine does not make them."""
    try:
        with two_hosts() as both:
            yield both
    except NoNamespaces as reason:
        pytest.skip(f"this machine makes no network namespaces: {reason}")

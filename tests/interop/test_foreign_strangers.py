"""Programs of foreign protocols have no keys: a closed fabric serves them on the machine itself, and from another one none is there."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pytest
import zmq

from tests.interop.netns import Net, host_of
from tests.interop.programs import needed
from tests.interop.test_strangers import ports, refused
from tests.interop.test_two_machines import Machine

STORE, CATALOG, CLONE, DOCUMENT = 27_505, 5_246, 5_556, 50_001
TABLES: Final = f"""\
[store]
[catalog]
[chp]
port = {CLONE}
writable = ["/client/"]
[doc.session.friday]
mdns = false
listen = "127.0.0.1:{DOCUMENT}"
"""
ANSWER_S: Final = 10.0
ENTERED: Final = '<penalty team="home" person="{person}" code="B"/>'


@pytest.fixture
def machines(tmp_path: Path) -> Iterator[tuple[Machine, Machine]]:
    """A root that speaks every foreign protocol there is, and a machine that was never invited."""
    needed("ip")
    with Net(2) as net:
        root, stranger = (Machine(net, number, tmp_path) for number in net.numbers)
        (root.home / "more.toml").write_text(TABLES, "utf-8")
        try:
            root.begin(["up", "more.toml", "--name", "root", "--level", "root", "--lake", "lake"])
            root.until(["status"], lambda said: "root" in said)
            root.run(["invite", "--listen", host_of(1)])
            root.run(["store", "found", "home"])
            root.until(["set", "home.kitchen.temp", "21.5"], lambda _: True)
            root.until(["doc", "add", "period=1", "jam=3", ENTERED.format(person=4711)], lambda _: True)
            yield root, stranger
        finally:
            for each in (stranger, root):
                each.end()


# What each program of another origin says first


def _greeted(host: str, port: int) -> bool:
    """A client of MoaT-KV is greeted as soon as it is connected."""
    with socket.create_connection((host, port), ANSWER_S) as link:
        return bool(link.recv(1))


def _heard(host: str, port: int, kind: str, *words: bytes) -> bool:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    try:
        made = context.socket(getattr(zmq, kind))
        made.setsockopt(zmq.LINGER, 0)
        if kind == "SUB":
            made.setsockopt(zmq.SUBSCRIBE, b"")
        made.connect(f"tcp://{host}:{port}")
        if words:
            made.send_multipart(words)
        return bool(made.poll(int(ANSWER_S * 1_000)))
    finally:
        context.destroy(0)


def _accepted(host: str, port: int) -> bool:
    """Writes of Clone have no answer: whoever is connected may write."""
    with socket.create_connection((host, port), ANSWER_S):
        return True


FIRST: Final[dict[str, tuple[int, Callable[[str, int], bool]]]] = {
    "a client of MoaT-KV": (STORE, _greeted),
    "a snapshot of Clone": (CLONE, lambda host, port: _heard(host, port, "DEALER", b"ICANHAZ?", b"/")),
    "updates of Clone": (CLONE + 1, lambda host, port: _heard(host, port, "SUB")),
    "writes of Clone": (CLONE + 2, _accepted),
    "a program of the catalog": (
        CATALOG,
        lambda host, port: _heard(host, port, "REQ", b"u_U", bytes(4), b"dbp.status"),
    ),
}


async def _found(host: str) -> dict[str, str]:
    """What comes of each protocol at a host."""
    told = {}
    for name, (port, speak) in FIRST.items():
        try:
            _accepted(host, port)
            told[name] = "answered" if speak(host, port) else "silent"
        except ConnectionRefusedError:
            told[name] = "nobody there"
    return told


@pytest.mark.proves(
    "SEC-055",
    part="clients of MoaT-KV, of Clone and of the catalog are answered on the machine, and find nobody there from another one",
)
def test_foreign_programs_are_served_on_the_machine_and_find_no_port_from_another(
    machines: tuple[Machine, Machine],
) -> None:
    root, stranger = machines
    assert dict.fromkeys(FIRST, "answered") == root.net.at(1).call(_found("127.0.0.1"))
    assert dict.fromkeys(FIRST, "nobody there") == stranger.net.at(2).call(_found(host_of(1)))
    foreign = {port for port, _ in FIRST.values()}
    assert not foreign & {*ports(root), *ports(root, "udp", "07")}
    assert {27_500, DOCUMENT} <= {*ports(root)}, "what has keys is there"


@pytest.mark.proves(
    "SEC-055", part="a document of a node without keys takes nothing from one with keys, and gives it nothing"
)
def test_a_document_without_keys_of_another_machine_is_no_member(machines: tuple[Machine, Machine]) -> None:
    root, stranger = machines
    before, knocked = root.run(["doc", "show"]), sum(refused(root).values())
    peer = ["--peer", f"{host_of(1)}:{DOCUMENT}"]
    stranger.begin(["doc", "join", "friday", "--listen", host_of(2), "--open", *peer])
    stranger.until(["doc", "add", "period=1", "jam=4", ENTERED.format(person=6666)], lambda _: True)
    root.until(["status", "--json"], lambda _: sum(refused(root).values()) > knocked)
    assert before == root.run(["doc", "show"])
    assert "4711" in before
    shown = stranger.run(["doc", "show"])
    assert (True, False) == ("6666" in shown, "4711" in shown)
    sees: list[Any] = [each for each in stranger.run(["doc", "peers"]).splitlines() if "root" in each]
    assert [] == sees

"""Whatever a node dials is dialled again where libzmq never would: after an error of the protocol."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

import pytest

from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from tests.shell.test_pinned import bound, keys
from tests.weather import greet_wrongly
from weft.base.effects import Connect
from weft.base.keys import KeyTable
from weft.node.channels import BEAT, CALLS, CHANNELS
from weft.shell import redialing
from weft.shell.ends import End
from weft.shell.links import Links
from weft.shell.sockets import Credentials

ME, PEER = b"m" * 16, b"p" * 16
LOCAL = "127.0.0.1"


class Kind(NamedTuple):
    """A channel that dials, and the one at the other end."""

    dials: str
    binds: str
    does_hear: bool


KINDS = {
    "keeps": Kind("catalog-values", "publish", does_hear=True),
    "adds": Kind("announce", "announced", does_hear=False),
    "calls": Kind("mesh-call", "mesh", does_hear=False),
    "dials": Kind("updates", "publish", does_hear=True),
}


class Rig:
    """One node that has dialled, and a peer that comes and goes."""

    def __init__(self, kind: Kind, *, has_keys: bool) -> None:
        self.kind, self.port = kind, free_port()
        self.place = f"{LOCAL}:{self.port}"
        mine, others = keys(), keys()
        table = KeyTable.of([bound(ME, mine), bound(PEER, others)])
        self._credentials = Credentials(others, table) if has_keys else None
        self._peer: Links | None = None
        self.node = Links(lambda: None)
        if has_keys:
            self.node.secure(Credentials(mine, table, lambda _: (PEER,)))
        self.come()
        if CHANNELS[kind.dials].how != CALLS:
            self.node.connect(Connect(kind.dials, self.place, topics=(BEAT,), tag=b"tag"))

    def come(self) -> None:
        """The peer is there."""
        self._peer = Links(lambda: None)
        if self._credentials is not None:
            self._peer.secure(self._credentials)
        self._peer.serve(LOCAL, self.port - CHANNELS[self.kind.binds].place, [self.kind.binds])

    def go(self) -> None:
        """The peer is away."""
        if self._peer is not None:
            self._peer.close()
            self._peer = None

    async def until_heard(self, said: bytes) -> None:
        """Say it until the other end has it; TimeoutError."""
        assert self._peer is not None
        called = f"{LOCAL}:{self.port - CHANNELS[self.kind.dials].place}".encode()
        async with asyncio.timeout(PATIENCE_S):
            while True:
                if self.kind.does_hear:
                    self._peer.send(self.kind.binds, b"", [BEAT, said])
                else:
                    self.node.send(self.kind.dials, called, [BEAT, said])
                hears = self.node if self.kind.does_hear else self._peer
                if any(said == heard.frames[-1] for heard in hears.drain()[0]):
                    return
                await asyncio.sleep(0.02)  # tidy: libzmq tells a publisher nothing of its subscribers; bounded

    def close(self) -> None:
        """Close all."""
        self.node.close()
        self.go()


def play(kind: Kind, dialogue: Callable[[Rig], Awaitable[None]], *, has_keys: bool = False) -> None:
    async def main() -> None:
        rig = Rig(kind, has_keys=has_keys)
        try:
            await rig.until_heard(b"first")
            await dialogue(rig)
        finally:
            rig.close()

    asyncio.run(main())


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was dialled again, from here on."""
    found: list[str] = []
    lost: Any = redialing.Redialing._again

    def again(self: Any, place: tuple[bytes, str]) -> None:
        found.append(place[1])
        lost(self, place)

    monkeypatch.setattr(redialing.Redialing, "_again", again)
    return found


@pytest.mark.parametrize("has_keys", [False, True], ids=["open", "keys"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_after_an_altered_greeting_the_peer_is_dialled_again(
    kind: Kind, has_keys: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redialing, "REDIAL_S", 0.3)
    monkeypatch.setitem(CHANNELS, "catalog-values", CHANNELS["catalog-values"]._replace(is_plain=False))

    async def dialogue(rig: Rig) -> None:
        rig.go()
        await asyncio.to_thread(greet_wrongly, LOCAL, rig.port)
        rig.come()
        await rig.until_heard(b"again")

    play(kind, dialogue, has_keys=has_keys)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_peer_that_stays_away_is_dialled_once_more_and_never_again(
    kind: Kind, dialled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redialing, "REDIAL_S", 0.1)

    async def dialogue(rig: Rig) -> None:
        rig.go()
        await asyncio.sleep(0.5)  # tidy: that nothing more happens has no event; five times the pause
        assert 1 == len(dialled)
        rig.come()
        await rig.until_heard(b"again")
        assert 1 == len(dialled)

    play(kind, dialogue)


def test_what_libzmq_restores_itself_is_not_dialled_again(dialled: list[str]) -> None:
    async def dialogue(rig: Rig) -> None:
        rig.go()
        rig.come()
        await rig.until_heard(b"again")
        end = rig.node.ends["updates"]
        assert ([], {}) == (dialled, end._redialing._waiting)

    play(KINDS["dials"], dialogue)


def test_a_peer_that_never_greets_well_is_dialled_at_a_bounded_rate(
    dialled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redialing, "REDIAL_S", 0.1)

    async def dialogue(rig: Rig) -> None:
        rig.go()
        begun = asyncio.get_running_loop().time()
        for _ in range(4):
            await asyncio.to_thread(greet_wrongly, LOCAL, rig.port)
        took = asyncio.get_running_loop().time() - begun
        assert 3 <= len(dialled) <= took / 0.1 + 1

    play(KINDS["adds"], dialogue)


def test_where_places_have_names_all_of_that_port_are_dialled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[str] = []

    async def main() -> None:
        node = Links(lambda: None)
        for place in ("a.invalid:27500", "b.invalid:27500", "127.0.0.1:27501"):
            node.connect(Connect("announce", place))
        monkeypatch.setattr(End, "dial", lambda _self, _key, _made, endpoint: found.append(endpoint))
        node.ends["announce"].redial(b"", "10.0.0.9:27500")
        assert ["a.invalid:27500", "b.invalid:27500"] == found
        node.ends["announce"].redial(b"", "127.0.0.1:27501")
        assert "127.0.0.1:27501" == found[-1]
        node.close()

    asyncio.run(main())

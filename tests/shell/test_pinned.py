"""Whom a node speaks to unasked, where it learns only later whose key is there (SEC-013)."""

import asyncio
from pathlib import Path

import pytest
import zmq

from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.base.effects import Connect
from weft.base.endpoints import ANNOUNCEMENTS, SNAPSHOTS, UPDATES
from weft.base.keys import Binding, KeyTable
from weft.shell import ends, redialing
from weft.shell.ends import End
from weft.shell.keys import Keys
from weft.shell.links import Links
from weft.shell.sockets import Credentials

ME, HERE, OTHER = b"m" * 16, b"h" * 16, b"o" * 16


def keys() -> Keys:
    return Keys(*(each.decode() for each in zmq.curve_keypair()))


def bound(uuid: bytes, pair: Keys) -> tuple[bytes, Binding]:
    return uuid, Binding(curve=(pair.public,), name=uuid[:1].decode(), roles=("collector",))


@pytest.mark.proves("SEC-013", part="who was not known when it was dialled, or for another, is dialled again")
@pytest.mark.parametrize("first", [(), (OTHER,), (OTHER, HERE)], ids=["nobody", "another", "several"])
def test_a_place_whose_key_is_learnt_later_is_spoken_to(
    first: tuple[bytes, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ends, "AGAIN_S", 0.2)
    mine, here, other = keys(), keys(), keys()
    table = KeyTable.of([bound(ME, mine), bound(HERE, here), bound(OTHER, other)])
    known = [first]

    async def main() -> None:
        port = free_port()
        speaker, hearer = Links(lambda: None), Links(lambda: None)
        speaker.secure(Credentials(mine, table, lambda _: known[0]))
        hearer.secure(Credentials(here, table))
        hearer.serve("127.0.0.1", port - ANNOUNCEMENTS, ["announced"])
        try:
            speaker.connect(Connect("announce", f"127.0.0.1:{port}"))
            speaker.send("announce", b"", [b"call"])
            if first != (OTHER, HERE):
                known[0] = (HERE,)
            async with asyncio.timeout(PATIENCE_S):
                while not (heard := hearer.drain()[0]):
                    speaker.send("announce", b"", [b"call"])
                    await asyncio.sleep(0.02)  # tidy: libzmq tells nobody whether a handshake succeeds; bounded
            assert [b"call"] == heard[0].frames
        finally:
            speaker.close()
            hearer.close()

    asyncio.run(main())


@pytest.mark.proves("SEC-052", part="of one socket that speaks to many, only what goes to who was shut out ends")
def test_others_are_spoken_to_when_one_is_shut_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ends, "AGAIN_S", 0.2)
    mine, here, other = keys(), keys(), keys()
    rows = [bound(ME, mine), bound(HERE, here), bound(OTHER, other)]

    async def main() -> None:
        ports = [free_port(), free_port()]
        of = {f"127.0.0.1:{port - ANNOUNCEMENTS}": (uuid,) for port, uuid in zip(ports, (HERE, OTHER), strict=True)}
        speaker = Links(lambda: None)
        speaker.secure(Credentials(mine, KeyTable.of(rows), lambda place: of[place]))
        hearers = []
        for pair, port in zip((here, other), ports, strict=True):
            hearers.append(hearer := Links(lambda: None))
            hearer.secure(Credentials(pair, KeyTable.of(rows)))
            hearer.serve("127.0.0.1", port - ANNOUNCEMENTS, ["announced"])
            speaker.connect(Connect("announce", f"127.0.0.1:{port}"))

        async def until_heard(hearer: Links) -> None:
            async with asyncio.timeout(PATIENCE_S):
                while not hearer.drain()[0]:
                    speaker.send("announce", b"", [b"call"])
                    await asyncio.sleep(0.02)  # tidy: libzmq tells nobody whether a handshake succeeds; bounded

        try:
            for hearer in hearers:
                await until_heard(hearer)
            speaker.admit(KeyTable.of(rows[:2]), frozenset([OTHER]))
            await asyncio.sleep(0.3)  # tidy: libzmq tells nobody whether a handshake succeeds; bounded
            for hearer in hearers:
                hearer.drain()
            await until_heard(hearers[0])
            for _ in range(20):
                speaker.send("announce", b"", [b"call"])
                await asyncio.sleep(0.02)  # tidy: libzmq tells nobody whether a handshake succeeds; bounded
            assert [] == hearers[1].drain()[0]
        finally:
            for each in (speaker, *hearers):
                each.close()

    asyncio.run(main())


@pytest.mark.proves("SEC-025", part="what was published in the turn in which a key ends reaches the other nodes")
def test_the_word_that_a_key_is_revoked_was_lost_with_the_port_that_was_bound_again() -> None:
    mine, here, other = keys(), keys(), keys()
    table = KeyTable.of([bound(ME, mine), bound(HERE, here), bound(OTHER, other)])
    words = [b"%d" % number + bytes(1_000) for number in range(500)]

    async def main() -> None:
        port = free_port()
        root, child = Links(lambda: None), Links(lambda: None)
        root.secure(Credentials(mine, table))
        child.secure(Credentials(here, table, lambda _: (ME,)))
        root.serve("127.0.0.1", port - UPDATES, ["publish"])
        try:
            child.connect(Connect("updates", f"127.0.0.1:{port}", b"", (b"",)))
            heard: list[bytes] = []

            async def listen(word: bytes, *, say: bool) -> None:
                async with asyncio.timeout(PATIENCE_S):
                    while word not in heard:
                        if say:
                            root.send("publish", b"", [word])
                        heard.extend(frame for each in child.drain()[0] for frame in each.frames)
                        await asyncio.sleep(0.02)  # tidy: libzmq tells nobody when something has come; bounded

            await listen(b"up", say=True)
            for word in words:
                root.send("publish", b"", [word])
            root.admit(KeyTable.of([bound(ME, mine), bound(HERE, here)]), frozenset([OTHER]))
            await listen(words[-1], say=False)
            assert [word for word in heard if word != b"up"] == words
            await listen(b"again", say=True)
        finally:
            root.close()
            child.close()

    asyncio.run(main())


@pytest.mark.proves("SEC-052", part="what a machine's own programs have said is heard, whoever loses a key meanwhile")
def test_a_program_of_this_machine_lost_what_it_had_said_when_a_key_of_somebody_else_ended(tmp_path: Path) -> None:
    mine, other = keys(), keys()

    async def main() -> None:
        links = Links(lambda: None)
        links.secure(Credentials(mine, KeyTable.of([bound(ME, mine), bound(OTHER, other)])))
        links.serve_locally(tmp_path / "chains.sock", ("clients",))
        context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        program = context.socket(zmq.DEALER)
        try:
            program.connect(f"ipc://{tmp_path}/chains.sock")
            program.send(b"message")
            async with asyncio.timeout(PATIENCE_S):
                while not links.ends["clients"].is_readable():  # noqa: ASYNC110  # libzmq has no event for it
                    await asyncio.sleep(0.02)  # tidy: libzmq tells nobody when something has come; bounded
            links.admit(KeyTable.of([bound(ME, mine)]), frozenset([OTHER]))
            program.send(b"and another")
            heard: list[bytes] = []
            async with asyncio.timeout(PATIENCE_S):
                while len(heard) < 2:
                    heard += [frame for each in links.drain()[0] for frame in each.frames]
                    await asyncio.sleep(0.02)  # tidy: libzmq tells nobody when something has come; bounded
            assert [b"message", b"and another"] == heard
        finally:
            program.close(0)
            context.term()
            links.close()

    asyncio.run(main())


@pytest.mark.proves(
    "SEC-013", part="while a node changes its key, who asks it anew asks it with the one that it let in"
)
@pytest.mark.parametrize("which", [0, 1], ids=["first", "second"])
def test_of_two_keys_each_question_began_with_the_wrong_one_for_ever(
    which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each question dialled twice, and what is dialled again forgets what it was to say: of two keys, always the wrong one."""
    monkeypatch.setattr(redialing, "REDIAL_S", 0.1)
    mine, here, either = keys(), keys(), keys()
    table = KeyTable.of(
        [bound(ME, mine), (HERE, Binding(curve=(here.public, either.public), name="here", roles=("collector",)))]
    )

    async def main() -> None:
        port = free_port()
        asker, asked = Links(lambda: None), Links(lambda: None)
        asker.secure(Credentials(mine, table, lambda _: (HERE,)))
        asked.secure(Credentials((here, either)[which], table))
        asked.serve("127.0.0.1", port - SNAPSHOTS, ["serve"])
        try:
            for number in range(8):
                asker.connect(Connect("ask", f"127.0.0.1:{port}", tag=b"a%d" % number))
                asker.send("ask", b"", [b"ICANHAZ?", b"/"])
                await until_greeted(asker.ends["ask"])
                if asked.drain()[0]:
                    return
            raise AssertionError("no question was heard")
        finally:
            asker.close()
            asked.close()

    async def until_greeted(ask: End) -> None:
        """The connection is made, by whichever key; what was said on it has had time to come."""
        greeted, calm = asyncio.Event(), ask._redialing._cancel

        def note(place: tuple[bytes, str]) -> None:
            calm(place)
            greeted.set()

        monkeypatch.setattr(ask._redialing, "_cancel", note)
        async with asyncio.timeout(PATIENCE_S):
            await greeted.wait()
        await asyncio.sleep(0.1)  # tidy: that nothing comes has no event; it is asked again

    asyncio.run(main())

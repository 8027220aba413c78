"""The chains core: any story of clients, registrations, mail and crashes (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, Life, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.effects import SendFailed, Source
from weft.base.mail import INBOX, Mail, to_record
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import (
    ChainsSettings,
    ForgetReader,
    Garbled,
    HoldBack,
    Placed,
    PlanFilters,
    PostFailed,
    PostReached,
    ProcessEnded,
    ShowChains,
)
from weft.cores.chains.settings import parse_filters
from weft.wire import clients
from weft.wire.clients import Beat, Bye, Conf, Drop, Fail, Hello, Next, Reg, Send, Unreg

ME = b"me".ljust(16, b".")
CHILD, PARENT = b"c" * 16, b"p" * 16
TABLES: tuple[list[dict[str, Any]], ...] = (
    [{"name": "f", "kind": "forward", "types": ["demo.x"], "dir": "in"}],
    [{"name": "j", "kind": "journal", "types": ["demo.x"], "dir": "in"}],
    [{"name": "m", "kind": "match", "types": ["demo.x"], "where": {"a": 1}, "dir": "out"}],
    [],
)
SOURCES = tuple(Source("clients", b"c%d" % n, None, f"localhost:0:0:{70 + n}") for n in range(3))
TO = (["PARENTSOF"], ["DIRECT", CHILD], ["CHILDREN"], ["DIRECT", ME], ["DIRECT", "root"], ["NOBODY"], 7)


def _arrives(life: Life, choices: Choices) -> None:
    """A child's mail comes to the screen; what is left of it is kept (CHN-033)."""
    mail = Mail(
        origin=choices.pick((CHILD, PARENT)), era=1, sequence=1 + choices.below(9), type=choices.pick(("demo.x", "t")),
        frames=(b'{"a":1}',), to=choices.pick((("PARENTSOF",), ("DIRECT", ME), ("PARENTSOF", None, 1))), at=9, fmt="json",
        via=(CHILD,),
    )  # fmt: skip
    record = to_record(mail, INBOX, life.now.wall)
    if choices.flag(4):
        record.attributes["mem"] = True
    core = life.core
    assert isinstance(core, Chains)
    life.keep(*core.screen(record, life.now))


def _cast(level: str) -> Cast:
    settings = ChainsSettings(name="me", level=level, clients=3, reader_messages=4, reader_bytes=2_000)
    parent = "" if level == "root" else "root"
    return Cast(
        make=lambda start: Chains((), settings, ME, 10 + start),
        says=(
            (SOURCES, (Hello, Hello, Reg, Reg, Reg, Unreg, Send, Send, Next, Drop, Fail, Conf, Beat(), Bye),
             lambda message: clients.decode_asked(clients.encode(message))),
        ),
        orders=(
            Placed(level, parent, ((CHILD, "c"),)), Placed(level, parent), HoldBack, Garbled("clients", b"c1", "bad-header"),
            ProcessEnded, PostReached, PostFailed, ShowChains(9), ForgetReader, SendFailed("clients", b"c1"),
            *(PlanFilters(tuple(parse_filters(table)[0])) for table in TABLES),
        ),
        hints={
            "v": (1, 1, 1, 2), "role": ("client",), "name": ("one", "two", "three"), "id": (b"1" * 16, b"2" * 16, b"3" * 16),
            "pid": (None, 71), "reg": (1, 1, 2), "dir": ("in", "in", "out"), "type": ("demo.x", "demo.x", "t", "weft.x"),
            "at": ("after-all", "before-all", 7), "access": ("ro", "rw", "ro"), "fail": (None, "open", "closed", "drop", "wait"),
            "timeout": (1, 5_000), "window": (1, 2, 64), "confirm": (True, True, False), "away": (0, 1_000, 600_000),
            "NextItem.id": range(1, 9), "GiveUp.id": range(1, 9), "ids": ([1], [2], [1, 2], [3]), "tag": range(1, 6), "to": TO,
            "want": ("spool", "dest", "none"), "keep": ("disk", "mem"), "exp": (0, 0, 1), "cause": (None, 1, 2), "n": (1,),
            "frames": ([b"x"], [b"x", b"y"], [b'{"a":1}'], []), "process": (71, 72), "ticket": (1, 2, 3), "count": (1,),
            "reader": ("one", "two"), "why": ("", "no"), "fmt": ("raw", "json"),
        },
        acts=(_arrives,),
        begin=(Placed(level, parent, ((CHILD, "c"),)),),
    )  # fmt: skip


CASTS = (_cast("collector"), _cast("root"))


def one(data: bytes) -> None:
    """The first byte says at which level."""
    play(CASTS[data[0] % len(CASTS) if data else 0], data[1:])


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("chains", len(CASTS))


if __name__ == "__main__":
    run(one)

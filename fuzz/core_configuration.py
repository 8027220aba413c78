"""The configuration core: any story of snapshots, updates, writes and roots (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.life import Cast, dialled, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.chance import Chance
from weft.base.effects import SendFailed, Source
from weft.base.now import SECOND
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import (
    ConfigurationSettings,
    FollowParent,
    LeaveParent,
    ListKeys,
    LoadTree,
    NoteApplied,
    NoteVoters,
    ReadHistory,
    RollBack,
    SetTimes,
    StepDown,
    TakeRoot,
    WriteKeys,
)
from weft.wire import replication
from weft.wire.envelope import Answer
from weft.wire.replication import Bundle, Hugz, ICanHaz, KThxBai, KvPack, KvPub, KvSync, Wtf

ME = b"me".ljust(16, b".")
KEYS = ("/CONFIG/web/a", "/CONFIG/web/b", "/CONFIG/g1/a", "/CONFIG/global/heartbeat", "/TOPO/root", "/TOPO/web/node/x")
SUBTREES = ("", "/", "/CONFIG/web/", "/CONFIG/", "/TOPO/root", "/.chains/", "/.chains/CONFIG/web/", "/.tip/CONFIG/web/")
TOPICS = (("/",), ("/CONFIG/web/", "/TOPO/root"), ("/CONFIG/global/", "/CONFIG/g1/", "/CONFIG/web/"))
NUMBERS = (0, 1, 2, 3, 4, 5, 6, 7, 9, 1 << 40, (1 << 40) + 1, (1 << 40) + 8, (2 << 40) + 9)
VALUES = (b"1", b"2", b'"x"', b"x" * 300, b'{"deleted":true,"prev":2}', b'{"uuid":"00"}')


def _travel(encode: Any, decode: Any) -> Any:
    return lambda message: decode(encode(message))


def _answered(message: Any) -> Any:
    if type(message) is KvPack:
        pairs = {pair.key: pair for pair in message.pairs}
        message = replication.pack([pairs[key] for key in sorted(pairs)])
    return replication.decode_answer(replication.encode_answer(Answer((b"",), message)))


CAST = Cast(
    make=lambda start: Configuration(
        ConfigurationSettings(keys_max=6, heartbeat_ns=2 * SECOND), ME, Chance(f"configuration/{start}")
    ),
    says=(
        ((dialled("updates"),), (KvPub, KvPub, KvPub, Hugz), _travel(replication.encode_update, replication.decode_update)),
        ((dialled("ask"), Source("ask", b"old")), (KvSync, KvSync, KThxBai, KThxBai, Bundle, Wtf, KvPack), _answered),
        (
            (Source("serve", b"c1"), Source("serve", b"c2", kind="REQ")),
            (ICanHaz,),
            _travel(replication.encode_ask, replication.decode_ask),
        ),
    ),
    orders=(
        FollowParent, FollowParent, LeaveParent(), TakeRoot, StepDown(), WriteKeys, WriteKeys, WriteKeys, LoadTree, ListKeys,
        ReadHistory, RollBack, NoteApplied, NoteVoters, SetTimes(2 * SECOND, 5), SendFailed("serve", b"c1"),
    ),
    hints={
        "key": KEYS, "subtree": SUBTREES, "number": NUMBERS, "prev": (None, *NUMBERS), "value": (*VALUES, b""),
        "uuid": (b"", ME, b"p" * 16), "topics": TOPICS, "endpoint": ("p:27500", "q:27500"), "raw": (b"",),
        "ttl": (None, 1.0, 60.0), "ttl_s": (None, 1.0, 60.0), "epoch": (0, 1, 2, 3), "ticket": range(1, 99),
        "if_number": (None, 0, 1, 3), "prefixes": (("/CONFIG/web/",), ("/CONFIG/",)),
        "LoadTree.pairs": ((), (("/CONFIG/web/a", b"7"),), (("/CONFIG/web/b", b"1"), ("/CONFIG/web/c", b"2"))),
        "after": ("", *KEYS), "count_max": (1, 2, 100), "node": (ME, b"a" * 16, b"b" * 16), "voters": (1, 2, 3),
        "ack": ("", "local", "quorum"), "by": ("", "topology"), "code": (0, 5, 7, 9), "dialect": ("strict", "chp"),
        "body": (b"",), "digest": (b"", b"d" * 16), "count": (0, 1, 2), "linked": (1, 2),
    },
)  # fmt: skip


def one(data: bytes) -> None:
    """One node, whose parent and children say anything."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("configuration")


if __name__ == "__main__":
    run(one)

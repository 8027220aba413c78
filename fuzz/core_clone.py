"""The clone core: any story of clients, servers and pairs (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.life import Cast, dialled, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.effects import SendFailed, Source
from weft.cores.clone.core import Clone
from weft.cores.clone.messages import CloneSettings, LearnPairs, StepDown, TakeRoot, WritesDone
from weft.wire import chp
from weft.wire.chp import KvPub, KvSet, KvSync
from weft.wire.envelope import Answer
from weft.wire.replication import Hugz, ICanHaz, KThxBai

ME = b"me".ljust(16, b".")
KEYS = ("/client/a", "/client/b", "/other/x", "17", "plain", "/CONFIG/web/a")
SETTINGS = (
    CloneSettings(serves=True, writable=("/client/",), loose_prefix="/loose"),
    CloneSettings(serves=True, writable=("/",), source="old:5556", prefix="/old"),
    CloneSettings(source="old:5556", prefix="/old", loose_prefix="/loose"),
)


def _cast(settings: CloneSettings) -> Cast:
    def travel(encode: Any, decode: Any) -> Any:
        return lambda message: decode(encode(message))

    return Cast(
        make=lambda start: Clone(settings, ME),
        says=(
            ((Source("clone-serve", b"c1"), Source("clone-serve", b"c2")), (ICanHaz,), travel(chp.encode_ask, chp.decode_ask)),
            ((Source("clone-take", b""),), (KvSet,), travel(chp.encode_set, chp.decode_set)),
            ((dialled("clone-ask"), Source("clone-ask", b"old")), (KvSync, KvSync, KThxBai),
             lambda message: chp.decode_answer(chp.encode_answer(Answer((), message)))),
            ((dialled("clone-follow"),), (KvPub, KvPub, Hugz), travel(chp.encode_update, chp.decode_update)),
        ),
        orders=(TakeRoot, TakeRoot(), StepDown(), LearnPairs, LearnPairs, WritesDone, SendFailed("clone-serve", b"c1")),
        hints={
            "key": KEYS, "subtree": ("", "/client/", "/old/", "/client/a"), "number": (1, 2, 3, 4, 9, 1 << 40), "numbers": ((),),
            "uuid": (b"", b"u" * 16, b"v" * 16), "value": (b"1", b"2", b""), "ttl_s": (None, 1.0, 30.0), "expires_ms": (None,),
            "raw": (b"",), "ticket": (1, 2, 3, 4, 5), "code": (0, 0, 5),
            "pairs[]": tuple((key, value) for key in ("/client/a", "/old/17", "/CONFIG/web/a") for value in (b"1", b"2", None)),
        },
    )  # fmt: skip


CASTS = tuple(map(_cast, SETTINGS))


def one(data: bytes) -> None:
    """The first byte says what the file says."""
    play(CASTS[data[0] % len(CASTS) if data else 0], data[1:])


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("clone", len(CASTS))


if __name__ == "__main__":
    run(one)

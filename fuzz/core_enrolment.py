"""The enrolment core: any story of invitations, machines that join, and a configuration that answers or not (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.life import Cast, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.chance import Chance
from weft.base.effects import SendFailed, Source
from weft.base.keys import Binding, binding_key, encode_binding
from weft.cores.enrolment.context import invitation_secret
from weft.cores.enrolment.core import Enrolment
from weft.cores.enrolment.messages import (
    BindingWritten,
    DoorIs,
    EnrolmentSettings,
    Equip,
    Invite,
    LearnPairs,
    RevokeKey,
    ShowInvitations,
    ShowKeys,
    StepDown,
    TakeRoot,
    Withdraw,
)
from weft.wire import enrolment
from weft.wire.enrolment import Join, proof_of
from weft.wire.z85 import to_z85

ME, SECRET = b"me".ljust(16, b"."), b"s" * 32
SERVER, CLIENTS = bytes(range(32)), (b"1" * 32, b"2" * 32)
SETTINGS = EnrolmentSettings(fabric="lab", name="root", endpoint="10.0.0.1:27500")
FIRST = Chance("fuzz/1").randbytes(8)
"""The id of the first invitation of a start."""
NODES = (b"a" * 16, b"b" * 16)
PROOFS = tuple(
    proof_of(invitation_secret(SECRET, FIRST), FIRST, node, key, SERVER)
    for node, key in zip(NODES, CLIENTS, strict=True)
)
BOUND = encode_binding(Binding(curve=(to_z85(CLIENTS[0]),), name="pi7", roles=("sensor",), until=1_795_000_000))


def _travel(message: Any) -> Any:
    return enrolment.decode_join(enrolment.encode_join(message))


CAST = Cast(
    make=lambda start: Enrolment(SETTINGS, ME, SECRET, Chance(f"fuzz/{start}")),
    says=(
        (
            (*tuple(Source("enrol", b"p", None, to_z85(key)) for key in CLIENTS), Source("enrol", b"q")),
            (Join, Join),
            _travel,
        ),
    ),
    orders=(
        TakeRoot(), TakeRoot(), StepDown(), Equip(to_z85(SERVER)), Equip(to_z85(SERVER)), Invite, Invite, DoorIs(27_509),
        DoorIs(0, "taken"), LearnPairs, BindingWritten, BindingWritten, Withdraw, RevokeKey, ShowKeys, ShowInvitations,
        SendFailed("enrol", b"p"),
    ),
    hints={
        "ident": (FIRST, b"x" * 8), "Withdraw.ident": (FIRST.hex(), "00"), "node": NODES, "proof": (*PROOFS, b"p" * 32),
        "RevokeKey.node": ("pi7", "root", "nobody", NODES[0].hex()), "name": ("pi7", "pi8", "root", "a/b"),
        "level": ("sensor",), "host": ("pi7",), "version": ("1",), "role": ("sensor", "king"), "uses": (1, 2, 0),
        "for_ns": (60 * 10**9, 900 * 10**9, 1), "names": ("*", "pi*", ""), "ticket": (1, 2, 3, 4), "code": (0, 0, 5),
        "pairs[]": tuple((binding_key(node), value) for node in (*NODES, ME) for value in (BOUND, b"{}", None)),
    },
)  # fmt: skip


def one(data: bytes) -> None:
    """One story."""
    play(CAST, data)


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("enrolment", 1)


if __name__ == "__main__":
    run(one)

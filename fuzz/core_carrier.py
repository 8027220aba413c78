"""The carrier: any story of children, parents, mail and full disks (FUZ-002)."""

from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.life import Cast, dialled, play
from fuzz.house.running import run
from fuzz.house.stories import drawn
from weft.base.chance import Chance
from weft.base.effects import Source
from weft.base.mail import Mail
from weft.cores.carrier.core import Carrier
from weft.cores.carrier.messages import (
    AssignParent,
    CarrierSettings,
    DismissParent,
    Garbled,
    HoldBack,
    PostMail,
    RootIs,
)
from weft.wire import hop
from weft.wire.hop import Beat, Bye, Hack, Hello, Hop, HopItem, Refuse, Welcome

ME = b"me".ljust(16, b".")
NODES = (ME, b"a" * 16, b"b" * 16, b"p" * 16)
ERAS = (1, 2, 3, 7)
NUMBERS = (0, 1, 2, 3, 4, 5, 9, 60)
KINDS = ("weft.metric", "weft.event", "demo.report", "weft.store", "weft.gone", "weft.lost", "weft.era")


def _hop(choices: Choices) -> Hop:
    """Records and mail, numbered as choices will."""
    items, frames, first = [], [], choices.pick(NUMBERS) or 1
    for _ in range(1 + choices.below(3)):
        kind, origin, era = choices.pick(KINDS), choices.pick(NODES), choices.pick(ERAS)
        to = (
            choices.pick((None, None, ["PARENTSOF"], ["DIRECT", ME], ["CHILDREN", None, 2])) if kind[0] == "d" else None
        )
        own = [b"body"] if to else [b"body", choices.pick((b"\x80", b"\x81\xa1n\x03"))]
        mid = (origin, era, choices.pick(NUMBERS) or 1)
        items.append(HopItem(mid=mid, type=kind, to=to, via=(choices.pick(NODES[1:]),), depth=0, ts=9, n=len(own)))
        frames += own
    return Hop(choices.pick(ERAS), first, items, frames, choices.flag(6))


def _post(choices: Choices) -> PostMail:
    to = choices.pick((("PARENTSOF",), ("DIRECT", NODES[1]), ("CHILDREN",)))
    mail = Mail(origin=ME, era=1, sequence=1 + choices.byte(), type="demo.x", frames=(b"x",), to=to, at=9)
    return PostMail(1 + choices.byte(), mail, choices.pick(((), NODES[1:2], NODES[1:3])))


def _state(core: Carrier) -> Any:
    core.parent.progress.pass_on(core.outbox.frontier())
    return core.parent.progress.state(), core.parent.seen, core.intake.met.state()


def _cast(level: str) -> Cast:
    return Cast(
        make=lambda start: Carrier(CarrierSettings(name="me", level=level), ME, 10 + start, Chance(f"carrier/{start}")),
        says=(
            (tuple(Source("down", peer) for peer in (b"c1", b"c2", b"c3")), (Hello, Hello, _hop, _hop, _hop, Hack, Beat(), Bye),
             lambda message: hop.decode(hop.seal(message))),
            ((dialled("up"),), (Welcome, Welcome, Refuse, Hack, Hack, _hop, Beat(), Bye), lambda message: hop.decode(hop.seal(message))),
        ),
        orders=(
            *((AssignParent, DismissParent()) if level != "root" else ()),
            RootIs, HoldBack, Garbled("down", b"c1", "bad-header"), _post, _post,
        ),
        hints={
            "v": (1, 1, 1, 2), "role": ("node", "node", "client"), "name": ("a", "b", "p"), "id": NODES[1:], "node": NODES[1:],
            "era": (11, 12, *ERAS), "first": (1, 1, 3), "next": (1, 2, 4, 9), "had": (None, (NODES[3], 2), (ME, 3)),
            "upto": NUMBERS, "safe": (None, *NUMBERS), "root": (None, (NODES[3], 0), (NODES[3], 1), (ME, 0)),
            "epoch": (0, 1, 2), "endpoint": ("p:27500", "q:27500"), "no": ([], [(1, "loop")]), "win": (0, 1, 256),
            "winb": (0, 1 << 20), "beat": (1_000,), "dead": (5_000,), "level": ("collector",), "parent": (None, "root"),
            "children": ([], ["a"]), "why": ("bye", "busy"), "addr": ("h:1",), "credit": (9,), "credit_bytes": (9,), "boot": (1,),
        },
        state=_state,
    )  # fmt: skip


CASTS = (_cast("collector"), _cast("root"), _cast("sensor"))


def one(data: bytes) -> None:
    """The first byte says at which level."""
    play(CASTS[data[0] % len(CASTS) if data else 0], data[1:])


def seeds() -> Iterable[bytes]:
    """Stories drawn from seeds."""
    return drawn("carrier", len(CASTS))


if __name__ == "__main__":
    run(one)

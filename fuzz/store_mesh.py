"""The mesh of the store: any frames are a message that comes back, or refused by a name (LNK-020, FLD-030)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import attempt, run
from fuzz.house.vectors import payloads
from weft.wire.store import mesh
from weft.wire.store.messages import Publication

CODES = frozenset(["accepted", "malformed", "too-large", "bad-sum", "bad-field"])


def one(data: bytes) -> None:
    """A topic's payload is not looked at here."""
    code, message = attempt(mesh.decode, frames_of(data))
    assert code in CODES, code
    if message is not None:
        assert message == mesh.decode(mesh.encode(message)), message


def seeds() -> Iterable[bytes]:
    """One of each kind."""
    for message in (
        mesh.Hello(fabric="weft", node="n1", boot=1),
        mesh.Hello(fabric="weft", node="n1", boot=9, endpoint="h:1", client=5, peers=("a:1", "b:2"), tock=7, sums=True),
        mesh.Beat(),
        mesh.Bye("stopping"),
        Publication("ping", b"\xc0"),
        Publication("info", b"\x80", has_sum=True),
    ):
        yield joined(mesh.encode(message))
    for payload in list(payloads("store-computed", of="upd"))[:3]:
        yield joined(mesh.encode(Publication("update", payload, has_sum=True)))


if __name__ == "__main__":
    run(one)

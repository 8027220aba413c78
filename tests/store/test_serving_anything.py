"""Whatever a client says, the node goes on: each request is answered, or its connection ends (CLN-002, FUZ-001)."""

from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.store.desk import Desk
from weft.base.errors import PeerError
from weft.cores.store.actions import ACTIONS, STREAMS
from weft.wire.store.clients import Request, decode_request

NAMES = [*ACTIONS, *STREAMS, "watch", "stop", "check_deleted", "kill_node", "none such"]
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(1 << 63), (1 << 64) - 1),
    st.sampled_from([0, 1, -1, 2, 5]),
    st.floats(),
    st.sampled_from(["a", "", "n1", "all", "latest", "local", "start", "x" * 300]),
    st.binary(max_size=4),
    st.sampled_from([b"", b"\xa1a", b"\xc0\xa1a", b"\xc1", b"\x01\x01", b"\xa1"]).map(
        lambda body: msgpack.ExtType(3, body)
    ),
    st.just(msgpack.ExtType(2, b"\x40" + bytes(8))),
    st.just(msgpack.ExtType(5, b"\xff\xff\xff\xff")),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["a", "node", "tick", "prev", "n1"]), inner, max_size=3)
    ),
    max_leaves=6,
)
LIKELY: dict[str, st.SearchStrategy[Any]] = {
    "path": st.sampled_from([b"", b"\xa1a", b"\xa1a\xa1b", b"\xc0\xa1x", b"\xa1a\x01"]).map(
        lambda b: msgpack.ExtType(3, b)
    ),
    "chain": st.sampled_from([None, {"node": "n1", "tick": 2}, {"node": "n1", "tick": 1, "prev": None}]),
    "since": st.sampled_from([None, ["n1", 1, 0], ["n1", 4, 9], ["x", 1, 1], [[], 1, 2], ["n1", 1, []]]),
    "nodes": st.sampled_from([True, {"n1": [1, [2, 9]]}, {"n1": [[9, 2]]}, {"q": []}]),
    "task": st.integers(0, 5),
    "node": st.sampled_from(["n1", "b"]),
    "tick": st.integers(-1, 5),
    "mode": st.sampled_from(["all", "latest", "r"]),
    "nchain": st.sampled_from([0, 1, -1, 5, True, -7]),
    "from_server": st.sampled_from(["n2", None]),
    **dict.fromkeys(("min_depth", "max_depth", "max"), st.sampled_from([0, 1, 3, -2, None, 1 << 62])),
    **dict.fromkeys(("fetch", "empty", "idem", "current"), st.sampled_from([True, False, 1, 0])),
}
TREE = ("path", "nchain", "min_depth", "max_depth", "empty", "from_server")
WRITE = ("path", "value", "chain", "prev", "idem", "nchain", "ack")
OWN: dict[str, tuple[str, ...]] = {
    "watch": ("since", "fetch", "mode", *TREE),
    "get_tree": TREE,
    "delete_tree": TREE,
    "set_value": WRITE,
    "delete_value": WRITE,
    "get_value": ("path", "node", "tick", "nchain"),
    "enum_node": ("node", "max", "current"),
    "check_deleted": ("nodes",),
    "stop": ("task",),
}
"""What these actions look at."""
FIELDS = sorted(set(Request.__struct_fields__) - {"seq", "action"})


@st.composite
def requests(draw: st.DrawFn) -> dict[str, Any]:
    action = draw(st.sampled_from([*NAMES, *list(OWN) * 5]))
    names = draw(st.lists(st.sampled_from(OWN.get(action, FIELDS)), max_size=6, unique=True))
    fields = {
        name: draw(ANYTHING if name not in LIKELY or draw(st.integers(0, 5)) == 0 else LIKELY[name]) for name in names
    }
    fields.setdefault("path", draw(LIKELY["path"]))
    return {"seq": draw(st.integers(0, 6)), "action": action, **fields}


@pytest.mark.proves("CLN-002")
@examples(80)
@given(st.lists(requests(), max_size=6), st.sampled_from((0, 10)))
def test_no_request_ends_a_node(asked: list[dict[str, Any]], qlen: int) -> None:
    desk = Desk("n1")
    desk.node.write("a", 1)
    desk.node.write("a.b", {"x": 1})
    desk.settle()
    client = desk.client(qlen=qlen)
    for message in asked:
        try:
            request = decode_request(msgpack.packb(message))
        except PeerError:
            continue
        client.answers.clear()
        desk.serving.hear(request, client.peer, desk.now)
        desk.settle()
        if request.seq > 0 and request.state != "ack":
            assert any(answer.seq == request.seq for answer in client.answers), message
    client.leave()
    assert 0 == desk.serving.streams

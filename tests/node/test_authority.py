"""Who may say what: what a message claims, against whose key it came with."""

from typing import Any

import msgspec
import pytest

from weft.base.effects import Source
from weft.base.errors import PeerError
from weft.base.keys import VERBS, Binding, Trust, binding_key, encode_binding
from weft.cores.topology.core import Topology
from weft.node.assembly import build_node
from weft.node.authority import CATALOG_VERBS, COMMANDS, QUERIES, VERB_OF, Authority
from weft.node.handshake import VERBS as DOMAINS
from weft.node.settings import settings_of
from weft.wire import hop
from weft.wire.beacon import Beacon
from weft.wire.catalog import messages as catalog
from weft.wire.discovery import Announcement, Control
from weft.wire.envelope import Asked
from weft.wire.replication import ICanHaz
from weft.wire.store import mesh

ROOT, PI, CAM, BOSS, OTHER = (letter * 16 for letter in (b"r", b"p", b"c", b"b", b"o"))
ROLES = {ROOT: "collector", PI: "sensor", CAM: "service", BOSS: "operator"}
NAMES = {ROOT: "root", PI: "pi", CAM: "cam", BOSS: "boss"}
AT = "10.0.0.1:27500"


def _binding(uuid: bytes, **changed: Any) -> Binding:
    said = {"curve": (NAMES[uuid][0] * 40,), "name": NAMES[uuid], "roles": (ROLES[uuid],)}
    return Binding(**(said | {"names": ("cam-*",)} if uuid == CAM else said) | changed)


def authority() -> Authority:
    return Authority(Trust(bindings={uuid.hex(): _binding(uuid) for uuid in NAMES}, places={AT: ROOT.hex()}))


def _code(channel: str, proved: bytes | None, message: Any) -> str:
    try:
        authority().hear(Source(channel, b"peer", proved), message)
    except PeerError as error:
        return error.code
    return "heard"


def _said(command: str, uuid: bytes, **properties: Any) -> Asked:
    return Asked((), Control(command, AT, uuid, properties))


def _item(origin: bytes, *via: bytes, kind: str = "weft.metric") -> hop.HopItem:
    return hop.HopItem(mid=(origin, 1, 1), type=kind, via=via, depth=0, ts=0)


def _hop(*items: hop.HopItem) -> hop.Hop:
    return hop.Hop(1, 1, list(items), [])


def _registered(name: str) -> catalog.Message:
    return catalog.Message(catalog.REGISTRATION, b"1", (b'{"name":"' + name.encode() + b'"}',))


def _hello(name: str, uuid: bytes) -> hop.Hello:
    return hop.Hello(v=1, role="node", name=name, id=uuid, era=1, first=1, next=1)


@pytest.mark.proves("SEC-026", part="each verb of the table is asked for by something, and nothing asks for another")
def test_every_verb_is_asked_for_and_has_a_row() -> None:
    of_channels = {of(None) for channel, of in VERB_OF.items() if channel not in ("control", "call", "catalog")}
    asked = {*COMMANDS.values(), *QUERIES.values(), *CATALOG_VERBS.values(), *of_channels, *DOMAINS.values(), "read"}
    assert set(VERBS) == asked - {""}


def test_the_tree_asks_the_same_hook_as_the_messages() -> None:
    trust = Trust(bindings={uuid.hex(): _binding(uuid) for uuid in NAMES})
    settings = msgspec.structs.replace(settings_of({"node": {"name": "root", "level": "root"}}), trust=trust)
    topology = build_node(settings, ROOT, 1, "seed").cores["topology"]
    assert isinstance(topology, Topology)
    assert [True, False, False] == [topology.may(uuid, "serve") for uuid in (ROOT, PI, OTHER)]


@pytest.mark.proves("CAT-060", part="which role a command and a query needs, and that names limit register and update")
@pytest.mark.proves("SEC-012", "SEC-026", "CFG-082")
@pytest.mark.parametrize(
    ("channel", "proved", "message", "code"),
    [
        ("control", PI, _said("polo", PI, name="pi"), "heard"),
        ("control", PI, _said("polo", OTHER), "not-yours"),
        ("control", PI, _said("polo", PI, name="root"), "not-yours"),
        ("control", PI, _said("assignment", CAM), "denied"),
        ("control", PI, _said("stop", PI), "denied"),
        ("control", PI, _said("aye", PI), "denied"),
        ("control", ROOT, _said("assignment", PI), "heard"),
        ("control", BOSS, _said("stop", BOSS), "heard"),
        ("control", None, _said("polo", PI), "no-key"),
        ("control", OTHER, _said("polo", OTHER), "denied"),
        ("announced", ROOT, Announcement("/MARCO", AT, ROOT, {}), "heard"),
        ("announced", ROOT, Announcement("/MARCO", AT, OTHER, {}), "not-yours"),
        ("announced", PI, Announcement("/MARCO", AT, PI, {}), "denied"),
        ("down", PI, _hello("pi", PI), "heard"),
        ("down", PI, _hello("pi", ROOT), "not-yours"),
        ("down", PI, _hello("root", PI), "not-yours"),
        ("down", CAM, _hello("cam", CAM), "denied"),
        ("down", PI, _hop(_item(PI, PI), _item(PI, PI)), "heard"),
        ("down", PI, _hop(_item(PI, PI), _item(OTHER, PI)), "not-yours"),
        ("down", PI, _hop(_item(PI, OTHER, PI)), "not-yours"),
        ("down", PI, _hop(_item(OTHER, PI, kind="weft.documents")), "heard"),
        ("down", ROOT, _hop(_item(OTHER, OTHER, ROOT)), "heard"),
        ("up", PI, hop.Beat(), "denied"),
        ("up", ROOT, hop.Beat(), "heard"),
        ("serve", PI, Asked((), ICanHaz("/")), "heard"),
        ("serve", CAM, Asked((), ICanHaz("/")), "denied"),
        ("mesh", PI, mesh.Hello(fabric="weft", node="pi", boot=1), "heard"),
        ("mesh", PI, mesh.Hello(fabric="weft", node="root", boot=1), "not-yours"),
        ("mesh", CAM, mesh.Beat(), "denied"),
        ("catalog", CAM, _registered("cam-7"), "heard"),
        ("catalog", CAM, _registered("door"), "not-yours"),
        ("catalog", CAM, catalog.Message(catalog.REQUEST, b"1", (b"dbp.deregister",)), "denied"),
        ("catalog", BOSS, catalog.Message(catalog.REQUEST, b"1", (b"dbp.deregister",)), "heard"),
        ("catalog", CAM, catalog.Message(catalog.TAP, b"1"), "denied"),
        ("catalog", None, _registered("door"), "heard"),
        ("clients", PI, None, "denied"),
        ("clients", CAM, None, "heard"),
        ("clients", None, None, "heard"),
        ("beacon", None, Beacon("weft", "pi", PI, "sensor", 1, 1), "heard"),
        ("publish", ROOT, None, "denied"),
    ],
)
def test_a_message_is_heard_if_its_key_may_say_it(channel: str, proved: bytes | None, message: Any, code: str) -> None:
    assert code == _code(channel, proved, message)


@pytest.mark.proves("SEC-024", part="a binding of the configuration counts, also one that is taken away")
def test_bindings_of_the_configuration_stand_in_the_place_of_what_enrolment_told() -> None:
    rights = authority()
    rights.learn(tuple((binding_key(uuid), encode_binding(_binding(uuid))) for uuid in (ROOT, PI)))
    assert {ROOT, PI} == {holder.uuid for holder in rights.table}
    rights.learn(((binding_key(PI), None),))
    assert {ROOT} == {holder.uuid for holder in rights.table}
    rights.learn(
        ((binding_key(PI, "web"), encode_binding(_binding(PI, roles=("collector",)))), (binding_key(ROOT), b"?"))
    )
    assert {PI} == {holder.uuid for holder in rights.table}


def test_it_is_noted_where_nodes_say_that_they_stand() -> None:
    rights = authority()
    rights.hear(Source("beacon", b"10.0.0.7"), Beacon("weft", "pi", PI, "sensor", 27_500, 1))
    rights.hear(Source("control", b"x", PI), Asked((), Control("polo", "10.0.0.8:27500", PI, {})))
    assert ((PI,), (PI,), (ROOT,), ()) == tuple(
        map(rights.nodes_at, ("10.0.0.7:27500", "10.0.0.8:27500", AT, "10.0.0.9:27500"))
    )
    nodes = {"10.0.0.9:27500": BOSS.hex(), "no endpoint": BOSS.hex()}
    rights.hear(Source("call", b"x", ROOT), Control("assignment", AT, PI, {"nodes": nodes}))
    assert ((BOSS,), (BOSS,)) == (rights.nodes_at("10.0.0.9:27500"), rights.nodes_at("10.0.0.9"))


def test_the_root_of_record_is_found_at_its_place() -> None:
    rights = authority()
    rights.learn(
        (("/TOPO/root", b'{"endpoint":"10.0.0.5:27500","uuid":"' + b"72" * 16 + b'","epoch":3,"name":"root"}'),)
    )
    assert (ROOT,) == rights.nodes_at("10.0.0.5:27500")


@pytest.mark.proves("SEC-024", part="a machine that was revoked and let in again is found at its address by all")
def test_who_comes_in_anew_at_the_address_of_one_whose_key_is_nobodys_is_found_there() -> None:
    """Nodes that had known the former one at that place dialled nobody there any more: documents and stores stayed apart."""
    rights, place = authority(), "10.0.0.7:27500"
    rights.note(place, PI)
    assert (PI,) == rights.nodes_at(place)
    anew = _binding(PI, curve=("n" * 40,), host="10.0.0.7")
    rights.learn(
        ((binding_key(ROOT), encode_binding(_binding(ROOT))), (binding_key(OTHER), encode_binding(anew))), number=5
    )
    assert OTHER in rights.nodes_at(place)
    rights.note(place, OTHER)
    assert (OTHER,) == rights.nodes_at(place)


@pytest.mark.proves(
    "SEC-054", part="who joins again knows the root's key of today, although its own configuration is older"
)
def test_of_two_bindings_of_a_node_that_which_ends_later_counts_and_none_comes_back_from_enrolment() -> None:
    told = _binding(ROOT, curve=("N" * 40,), until=200)
    known = Authority(Trust(bindings={ROOT.hex(): told, PI.hex(): _binding(PI, until=200)}))

    def configured(until: int) -> str:
        known.learn(((binding_key(ROOT), encode_binding(_binding(ROOT, until=until))),))
        holder = known.table.node(ROOT)
        assert holder is not None
        return holder.keys[0][0]

    assert ["N", "r", "r", "r"] == [configured(until) for until in (100, 200, 300, 0)]
    assert known.table.node(PI) is None, (
        "the configuration has no binding of it: its key was revoked, or is unknown there"
    )


@pytest.mark.proves(
    "SEC-024", part="a revoked key stays so where somebody was told of it, also if its machine comes in again"
)
def test_who_was_told_of_a_key_forgets_it_when_it_is_revoked() -> None:
    """A machine that came in again from a root whose clock was behind was known by its former, stolen key."""
    known = Authority(Trust(bindings={PI.hex(): _binding(PI, until=200), ROOT.hex(): _binding(ROOT, until=200)}))
    known.learn(tuple((binding_key(each), encode_binding(_binding(each, until=200))) for each in (PI, ROOT)))
    known.learn(((binding_key(PI), None),))
    known.learn(((binding_key(PI), encode_binding(_binding(PI, curve=("n" * 40,), until=150))),))
    assert known.table.find("p" * 40) is None
    assert known.table.find("n" * 40) is not None


@pytest.mark.proves(
    "SEC-054",
    part="a node that was cut off while all parents that it could have got other keys hears those of its root",
)
def test_an_assignment_tells_keys_that_count_until_the_configuration_is_as_new() -> None:
    """Sensors whose two collectors were revoked and invited again, while nobody told them, came home never."""
    root, sensor = authority(), authority()
    pairs = tuple((binding_key(each), encode_binding(_binding(each))) for each in (ROOT, PI))
    renewed = (binding_key(BOSS), encode_binding(_binding(BOSS, curve=("N" * 40,), roles=("collector",))))
    sensor.learn(pairs, 5)
    root.learn((*pairs, renewed), 9)
    assert (None, 9) == (sensor.table.node(BOSS), root.told_of((BOSS,))["number"])
    changes: list[int] = []
    sensor.has_changed = lambda: changes.append(1)
    said = Control("assignment", AT, PI, {"nodes": {"10.0.0.9:27500": BOSS.hex()}, **root.told_of((BOSS, b"?" * 16))})

    def key() -> str:
        holder = sensor.table.node(BOSS)
        return "" if holder is None else holder.keys[0]

    sensor.hear(Source("call", b"x", ROOT), said)
    assert ("N" * 40, [1]) == (key(), changes)
    sensor.hear(Source("call", b"x", ROOT), said)
    assert [1] == changes
    sensor.learn((), 8)
    assert key() == "N" * 40
    sensor.learn((), 9)
    assert key() == "", "by its own configuration that key was revoked"
    sensor.hear(Source("call", b"x", ROOT), said)
    assert key() == "", "what is no newer than what it knows tells it nothing"


def test_who_may_place_nodes_but_not_serve_them_tells_no_keys_and_a_bad_one_is_left_out() -> None:
    rights = authority()
    binding = encode_binding(Binding(curve=("n" * 40,), name="n", roles=("collector",))).decode()
    for sender, told, expected in (
        (BOSS, {"6e" * 16: binding}, False),
        (ROOT, {"6e" * 16: "{"}, False),
        (ROOT, {"6e" * 16: binding}, True),
    ):
        rights.hear(Source("call", b"x", sender), Control("assignment", AT, PI, {"keys": told, "number": 7}))
        assert expected == (rights.table.node(b"n" * 16) is not None)

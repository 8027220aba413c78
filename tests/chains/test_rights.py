"""Who may read, rewrite and send in the chains, by the kernel's word, by its key, and by the rules of the node's file."""

from typing import Any

import msgspec
import pytest

from tests.chains.sessions_rig import NODE, hello, send
from tests.chains.sessions_rig import Node as Rig
from weft.base.effects import Send, Source, Tell
from weft.base.errors import UserError
from weft.base.keys import Holder, Role
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import ChainsSettings, ClientRefused, ClientWelcomed
from weft.cores.chains.rights import Allow, Rights
from weft.node.settings import settings_of
from weft.wire.clients import Done, Error, Refuse, Reg, StatusItem

OWN, ROOT, ANNA, TCP, SILENT = (
    Source("clients", b"p", None, kind)
    for kind in ("localhost:1000:1000:17", "localhost:0:0:18", "localhost:1001:1001:19", "127.0.0.1", "")
)
CAM, BOSS, PI, GONE = (Source("clients", b"p", letter * 16, "10.0.0.3") for letter in (b"c", b"b", b"p", b"g"))
HOLDERS = {
    source.proved: Holder(source.proved or b"", name, frozenset({role}), (), 0, ())
    for source, name, role in ((CAM, "cam", Role.SERVICE), (BOSS, "boss", Role.OPERATOR), (PI, "pi", Role.SENSOR))
}
RULES = (
    Allow(user="uid:1001", verbs=("read", "send"), types=("app.*",), dir=("in",)),
    Allow(user="uid:1001", verbs=("send",), types=("app.note",), dir=("out",)),
    Allow(user="key:cam", verbs=("rewrite",), types=("demo.report",)),
)


def rights(*rules: Allow, is_closed: bool = True) -> Rights:
    made = Rights(rules, 1000, is_closed=is_closed)
    made.holder_of = HOLDERS.get
    return made


@pytest.mark.proves("CHN-080")
def test_a_user_is_who_the_kernel_or_the_key_says_and_else_nobody() -> None:
    judge = rights()
    users = [judge.user_of(source) for source in (OWN, ROOT, ANNA, TCP, SILENT, CAM, GONE)]
    assert ["uid:1000", "uid:0", "uid:1001", "anybody", "", "key:cam", ""] == users
    assert [True, True, False, False, False, False] == [
        judge.is_owner(each) for each in (OWN, ROOT, ANNA, TCP, SILENT, CAM)
    ]


@pytest.mark.proves("CHN-081", part="what each may without a rule, and that nobody may what none allows")
def test_without_a_rule_the_owner_may_all_a_service_reads_and_sends_and_others_nothing() -> None:
    judge = rights()
    may = {
        name: [judge.may(source, verb, "in", "app.x") for verb in ("read", "rewrite", "send")]
        for name, source in (
            ("own", OWN), ("root", ROOT), ("anna", ANNA), ("tcp", TCP), ("silent", SILENT),
            ("cam", CAM), ("boss", BOSS), ("pi", PI), ("gone", GONE),
        )
    }  # fmt: skip
    all_, none = [True] * 3, [False] * 3
    assert {
        "own": all_, "root": all_, "anna": none, "tcp": none, "silent": none,
        "cam": [True, False, True], "boss": all_, "pi": none, "gone": none,
    } == may  # fmt: skip
    attached = [judge.may_attach(source) for source in (OWN, ANNA, TCP, SILENT, CAM, BOSS, PI, GONE)]
    assert [True, False, False, False, True, True, False, False] == attached
    assert rights(is_closed=False).may(TCP, "rewrite", "in", "app.x"), "an open node knows nobody (SEC-002)"
    assert not rights(is_closed=False).may(SILENT, "read", "in", "app.x")


@pytest.mark.proves(
    "CHN-081", part="what rules allow: users, verbs, directions and types, and all types that a pattern means"
)
@pytest.mark.parametrize(
    ("source", "verb", "direction", "kind", "expected"),
    [
        (ANNA, "read", "in", "app.x", True),
        (ANNA, "read", "in", "app.*", True),
        (ANNA, "read", "in", "app.x.*", True),
        (ANNA, "read", "in", "*", False),
        (ANNA, "read", "in", "application", False),
        (ANNA, "read", "out", "app.x", False),
        (ANNA, "rewrite", "in", "app.x", False),
        (ANNA, "send", "out", "app.note", True),
        (ANNA, "send", "out", "app.notes", False),
        (CAM, "rewrite", "out", "demo.report", True),
        (CAM, "rewrite", "out", "demo.*", False),
        (PI, "read", "in", "app.x", False),
    ],
)
def test_a_rule_allows_what_it_says_and_no_more(
    source: Source, verb: str, direction: str, kind: str, expected: bool
) -> None:
    assert expected is rights(*RULES).may(source, verb, direction, kind)


def strangers_node() -> Rig:
    return Rig(uid=1000, is_closed=True, allow=RULES)


@pytest.mark.proves("CHN-081", part="a refusal is `denied`, changes nothing, and is told of once a minute and user")
def test_what_nobody_allows_is_denied_and_told_of_once_a_minute() -> None:
    node = strangers_node()

    def says(message: Any) -> list[Any]:
        node.receive(message, ANNA)
        return node.turn(ANNA.peer)

    says(hello("notes"))
    assert [Error(about="reg", why="denied", reg=1)] == says(Reg(reg=1, dir="in", type="demo.report"))
    assert [Error(about="reg", why="denied", reg=2)] == says(Reg(reg=2, dir="in", type="app.x", access="rw"))
    assert [Done("reg", 3, 1, 1)] == says(Reg(reg=3, dir="in", type="app.x"))
    [status] = says(send(7))
    assert [StatusItem(tag=7, ok=False, why="denied")] == status.m
    assert ({"denied": 2}, {"denied": 1}, []) == (
        node.context.counters.errors,
        node.context.counters.refused,
        node.chains.calls,
    )
    refused = ClientRefused("notes", "may not read demo.report", "uid:1001")
    assert [ClientWelcomed("notes", 4711), refused] == [event for event in node.told if type(event) in TOLD]
    node.skip(60_000_000_000)
    says(Reg(reg=4, dir="out", type="app.x"))
    assert ClientRefused("notes", "may not read app.x", "uid:1001") == node.told[-1]


TOLD = (ClientWelcomed, ClientRefused)


@pytest.mark.proves("CHN-080", part="whoever may nothing is not taken at all")
def test_whoever_may_nothing_is_not_taken() -> None:
    core = Chains(settings=ChainsSettings(uid=1000, is_closed=True), node=NODE, era=5)
    rig = Rig()
    for source in (ANNA, TCP, SILENT):
        core.receive(hello("notes"), source, rig.now)
    effects = core.effects()
    texts = [effect.message for effect in effects if isinstance(effect, Send)]
    assert [
        Refuse("denied", "uid:1001 may nothing here: no [[chains.allow]] names it"),
        Refuse("denied", "anybody may nothing here: no [[chains.allow]] names it"),
        Refuse("denied", "who is unknown may nothing here: no [[chains.allow]] names it"),
    ] == texts
    assert 3 == len(
        [effect for effect in effects if isinstance(effect, Tell) and isinstance(effect.event, ClientRefused)]
    )
    assert (0, {"denied": 3}) == (len(core.sessions), core.sessions.counters.refused)


FILE = {"node": {"name": "n1", "level": "root"}}


def test_rules_stand_in_the_nodes_file() -> None:
    rule = {"user": "uid:1001", "verbs": ["read"], "types": ["app.*"], "dir": ["in"]}
    settings = settings_of({**FILE, "chains": {"allow": [rule]}})
    assert (Allow(user="uid:1001", verbs=("read",), types=("app.*",), dir=("in",)),) == settings.chains.allow


@pytest.mark.parametrize(
    "wrong", [{"user": "anna"}, {"verbs": []}, {"verbs": ["own"]}, {"types": ["App"]}, {"dir": ["up"]}, {"more": 1}]
)
def test_a_rule_that_means_nothing_ends_the_start(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError) as refused:
        settings_of({**FILE, "chains": {"allow": [{"user": "uid:1", "verbs": ["read"], **wrong}]}})
    assert "bad-settings" == refused.value.code
    assert "chains" in str(refused.value)
    assert msgspec.convert({"user": "uid:1", "verbs": ["read"]}, Allow).types == ("*",)


@pytest.mark.parametrize(
    "wrong",
    [
        {"verbs": []},
        {"verbs": ["read"] * 4},
        {"dir": []},
        {"dir": ["in"] * 3},
        {"types": []},
    ],
)
def test_a_rule_of_nothing_or_of_the_same_again_is_refused(wrong: dict[str, list[str]]) -> None:
    right: dict[str, Any] = {"user": "anybody", "verbs": ["read"]}
    assert ("*",) == msgspec.convert(right, Allow).types
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(right | wrong, Allow)

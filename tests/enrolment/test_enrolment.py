"""Who is let in: the table walked, what is durable before a WELCOME, limits, crashes, and the keys that a root writes."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tables.tables import pairs
from weft.base.chance import Chance
from weft.base.effects import Effect, Perform, Persist, Reply, Send, Source, Tell
from weft.base.errors import PeerError
from weft.base.keys import Binding, binding_key, decode_binding, encode_binding
from weft.base.now import SECOND, Now
from weft.base.records import Entry, Record
from weft.cores.enrolment import messages as told
from weft.cores.enrolment.context import invitation_secret
from weft.cores.enrolment.core import Enrolment
from weft.cores.enrolment.memory import Invitation, to_record
from weft.cores.enrolment.messages import EnrolmentSettings, Equip, Invite, Invited, Refused, Welcome
from weft.cores.enrolment.states import TABLE, Cell, On, State
from weft.wire.enrolment import About, Join, proof_of
from weft.wire.journal import decode_record, encode_record
from weft.wire.z85 import to_z85

ROOT, MACHINE, OTHER = b"r" * 16, b"m" * 16, b"o" * 16
MACHINE_SECRET = b"s" * 32
SERVER_KEY, CLIENT_KEY, OTHER_KEY = bytes(range(32)), bytes(range(32, 64)), bytes(range(64, 96))
MINUTE = 60 * SECOND
START = Now(SECOND, 1_795_000_000 * SECOND)
SETTINGS = EnrolmentSettings(fabric="lab", name="root", endpoint="10.0.0.1:27500")


class Root:
    """A core on a root, with a configuration that writes at once, a disk, and a clock."""

    def __init__(self) -> None:
        self.now, self.entries = START, list[Entry]()
        self.pairs: dict[str, bytes] = {}
        self.number = 0
        """Of the configuration."""
        self.writes_are = 0
        """The code of what is wanted written."""
        self.is_holding = False
        """Whether the configuration answers nothing yet."""
        self.wanted: list[told.BindingWanted] = []
        self.start()

    def start(self) -> None:
        """Start anew with what is durable."""
        self.core = Enrolment(SETTINGS, ROOT, MACHINE_SECRET, Chance(f"tests/{len(self.entries)}"))
        self.core.restore(self.entries, self.now)
        self.done: list[Effect] = []
        for order in (
            told.TakeRoot(),
            told.LearnPairs(tuple(self.pairs.items())),
            Equip(to_z85(SERVER_KEY), "5e" * 32),
        ):
            self.core.command(order, self.now)
        self.turn()

    def turn(self) -> list[Effect]:
        """Carry out what is wanted, in order; returns it."""
        before = len(self.done)
        while effects := self.core.effects():
            for effect in effects:
                self.done.append(effect)
                self._carry_out(effect)
        return self.done[before:]

    def _carry_out(self, effect: Effect) -> None:
        if isinstance(effect, Persist):
            self.entries += [(len(self.entries) + n, _written(each)) for n, each in enumerate(effect.records, 1)]
        elif isinstance(effect, Perform) and isinstance(effect.work, told.OpenDoor):
            self.core.command(told.DoorIs(27_509), self.now)
        elif isinstance(effect, Tell) and isinstance(effect.event, told.BindingWanted):
            self.wanted.append(effect.event)
            if not self.is_holding:
                self.write()

    def write(self) -> None:
        """Let the configuration answer all that was wanted."""
        wanted, self.wanted = self.wanted, []
        for each in wanted:
            if not self.writes_are:
                self.pairs[each.key] = each.value
                self.number += 1
                self.core.command(told.LearnPairs(((each.key, each.value or None),), self.number), self.now)
            self.core.command(told.BindingWritten(each.ticket, self.writes_are), self.now)

    def order(self, order: Any) -> list[Effect]:
        self.core.command(order, self.now)
        return self.turn()

    def invite(self, uses: int = 1, role: str = "sensor", names: str = "*", for_ns: int = 15 * MINUTE) -> bytes:
        """A new invitation; its id."""
        done = self.order(Invite(1, role, uses, for_ns, names))
        answers = [each.answer for each in done if isinstance(each, Reply)]
        assert isinstance(answers[0], Invited), answers
        return bytes.fromhex(answers[0].ident)

    def join(self, ident: bytes, node: bytes = MACHINE, key: bytes = CLIENT_KEY, name: str = "pi7") -> Any:
        """What a machine is answered that has the token."""
        secret = invitation_secret(MACHINE_SECRET, ident)
        return self.say(Join(ident, node, proof_of(secret, ident, node, key, SERVER_KEY), About(name)), key)

    def guess(self, ident: bytes, address: str = "") -> Any:
        """What somebody is answered who has no token."""
        return self.say(Join(ident, OTHER, b"x" * 32, About("thief")), OTHER_KEY, address)

    def say(self, join: Join, key: bytes, address: str = "") -> Any:
        self.core.receive(join, Source("enrol", b"peer", None, f"{to_z85(key)} {address}".rstrip()), self.now)
        answers = [each.message for each in self.turn() if isinstance(each, Send)]
        return answers[0] if answers else None

    def state(self, ident: bytes) -> str:
        return self.core.invitations.kept[ident].state

    def told(self, kind: type) -> list[Any]:
        return [each.event for each in self.done if isinstance(each, Tell) and isinstance(each.event, kind)]

    def advance(self, span_ns: int) -> None:
        """Let time pass, from deadline to deadline."""
        until = self.now.mono + span_ns
        for _ in range(100):
            due = self.core.deadline()
            if due is None or due > until:
                break
            self._pass_to(max(due, self.now.mono))
            self.core.wake(self.now)
            self.turn()
        else:
            raise AssertionError("wakes for ever")
        self._pass_to(until)

    def _pass_to(self, mono: int) -> None:
        self.now = Now(mono, self.now.wall + mono - self.now.mono)


def _written(record: Record) -> Record:
    return decode_record(encode_record(record))


def code_of(answer: Any) -> str:
    return answer.code if isinstance(answer, Refused) else type(answer).__name__


# The table

REACHED: dict[State, Callable[[Root, bytes], Any]] = {
    State.USED: lambda root, ident: root.join(ident),
    State.LOCKED: lambda root, ident: [root.guess(ident) for _ in range(5)],
    State.EXPIRED: lambda root, ident: root.advance(16 * MINUTE),
    State.REVOKED: lambda root, ident: root.order(told.Withdraw(2, ident.hex())),
}


def in_state(state: State, uses: int = 1) -> tuple[Root, bytes]:
    root = Root()
    ident = root.invite(uses)
    if state in REACHED:
        REACHED[state](root, ident)
    assert state.name == root.state(ident)
    root.done.clear()
    return root, ident


def give(root: Root, ident: bytes, on: On) -> None:
    """Let one input of the table happen."""
    match on:
        case On.RIGHT | On.LAST:
            root.join(ident, OTHER, OTHER_KEY, "other")
        case On.AGAIN:
            root.join(ident)
        case On.WRONG:
            root.guess(ident)
        case On.FIFTH:
            for _ in range(5):
                root.done.clear()
                root.guess(ident)
        case On.TIME:
            root.now = Now(root.now.mono + 16 * MINUTE, root.now.wall + 16 * MINUTE)
            root.core.wake(root.now)
            root.turn()
        case On.REVOKED:
            root.order(told.Withdraw(2, ident.hex()))


SAID: dict[tuple[State, On], list[str]] = {
    (State.OPEN, On.RIGHT): ["BindingWanted", "Persist", "Welcome", "MachineJoined"],
    (State.OPEN, On.LAST): ["BindingWanted", "Persist", "Welcome", "MachineJoined", "InvitationEnded"],
    (State.OPEN, On.AGAIN): ["Welcome"],
    (State.OPEN, On.WRONG): ["Persist", "bad-proof"],
    (State.OPEN, On.FIFTH): ["Persist", "bad-proof", "InvitationLocked", "CloseDoor"],
    (State.OPEN, On.TIME): ["Persist", "InvitationEnded", "CloseDoor"],
    (State.OPEN, On.REVOKED): ["Persist", "InvitationEnded", "Withdrawn", "CloseDoor"],
    (State.USED, On.RIGHT): ["used"],
    (State.USED, On.AGAIN): ["Welcome"],
    (State.USED, On.WRONG): ["bad-proof"],
    (State.USED, On.REVOKED): ["Withdrawn"],
    (State.LOCKED, On.RIGHT): ["revoked"],
    (State.LOCKED, On.WRONG): ["revoked"],
    (State.LOCKED, On.REVOKED): ["Withdrawn"],
    (State.EXPIRED, On.RIGHT): ["expired"],
    (State.EXPIRED, On.WRONG): ["expired"],
    (State.EXPIRED, On.REVOKED): ["Withdrawn"],
    (State.REVOKED, On.RIGHT): ["revoked"],
    (State.REVOKED, On.WRONG): ["revoked"],
    (State.REVOKED, On.REVOKED): ["Withdrawn"],
}
"""What is wanted then, in order; LAST and FIFTH of an ended one are RIGHT and WRONG."""


def named(effect: Effect) -> str:
    match effect:
        case Persist():
            return "Persist"
        case Send():
            return code_of(effect.message)
        case Tell():
            return type(effect.event).__name__
        case Reply():
            return type(effect.answer).__name__
        case Perform():
            return type(effect.work).__name__
    raise AssertionError(effect)


@pytest.mark.proves("SEC-022", part="the table of invitations")
@pytest.mark.parametrize("state, on, cell", list(pairs(TABLE)), ids=str)
def test_every_state_with_every_input(state: State, on: On, cell: Cell | None) -> None:
    if on in (On.LAST, On.FIFTH) and state is not State.OPEN:
        return  # to one that has ended, nobody is the last
    if on is On.AGAIN and state is not State.USED:
        root, ident = in_state(State.OPEN, uses=2)
        root.join(ident)
        if state in REACHED:
            REACHED[state](root, ident)
        root.done.clear()
    else:
        root, ident = in_state(state, uses=2 if (state, on) == (State.OPEN, On.RIGHT) else 1)
    root.done.clear()
    give(root, ident, on)
    expected = SAID.get((state, on), SAID.get((state, On.RIGHT), []) if on is On.AGAIN else [])
    assert (cell.then if cell else state).name == root.state(ident)
    actual = [name for each in root.done if (name := named(each)) != "CloseDoor" or name in expected]
    assert expected == actual


# What is durable before a WELCOME


@pytest.mark.proves("SEC-022", part="binding and use are durable before the WELCOME")
def test_nobody_is_welcomed_before_binding_and_use_are_durable() -> None:
    root = Root()
    ident = root.invite()
    root.is_holding = True
    assert root.join(ident) is None
    assert [binding_key(MACHINE)] == [each.key for each in root.wanted]
    root.done.clear()
    root.write()
    kinds = [named(effect) for effect in root.turn()]
    assert kinds.index("Persist") < kinds.index("Welcome")


@pytest.mark.proves("SEC-022", part="binding and use are durable before the WELCOME")
@pytest.mark.parametrize("is_written", [False, True])
def test_whoever_was_cut_off_by_a_crash_of_the_root_joins_by_the_same_token(is_written: bool) -> None:
    root = Root()
    ident = root.invite()
    root.is_holding = True
    root.join(ident)
    if is_written:  # the binding, and not the use
        root.pairs[root.wanted[0].key] = root.wanted[0].value
    root.wanted, root.is_holding = [], False
    root.start()
    assert "Welcome" == code_of(root.join(ident))
    assert "used" == code_of(root.join(ident, OTHER, OTHER_KEY, "other"))


@pytest.mark.parametrize("code, answer", [(5, "busy"), (0, "Welcome")])
def test_a_configuration_that_cannot_be_written_lets_nobody_in(code: int, answer: str) -> None:
    root = Root()
    ident, root.writes_are = root.invite(), code
    assert answer == code_of(root.join(ident))


def test_a_welcome_says_all_that_a_machine_has_to_know() -> None:
    root = Root()
    welcome = root.join(root.invite(role="collector"))
    assert isinstance(welcome, Welcome)
    assert ("lab", ("collector",), "pi7") == (welcome.fabric, welcome.roles, welcome.name)
    assert (("10.0.0.1:27500",), ROOT.hex(), "5e" * 32) == (welcome.parents, welcome.root, welcome.beacon_key)
    assert {MACHINE.hex(): (to_z85(CLIENT_KEY),), ROOT.hex(): (to_z85(SERVER_KEY),)} == {
        uuid: binding.curve for uuid, binding in welcome.keys.items()
    }


@pytest.mark.proves("SEC-024", part="what a binding says, and where it stands")
def test_a_binding_is_a_value_of_the_configuration() -> None:
    root = Root()
    root.join(root.invite(role="service", names="therm*"), name="thermo")
    binding = decode_binding(root.pairs[f"/CONFIG/global/key/{MACHINE.hex()}"])
    until = 1_795_000_000 + 90 * 86_400
    expected = Binding(curve=(to_z85(CLIENT_KEY),), name="thermo", roles=("service",), names=("therm*",), until=until)
    assert expected == binding


# Refusals


def names_taken() -> tuple[Root, bytes]:
    root = Root()
    assert "Welcome" == code_of(root.join(root.invite()))
    return root, root.invite(uses=9, names="[!x]*")


@pytest.mark.proves("SEC-022", part="every code of REFUSED")
@pytest.mark.parametrize(
    "node, key, name, code",
    [
        (OTHER, OTHER_KEY, "pi8", "Welcome"),
        (OTHER, OTHER_KEY, "pi7", "name-taken"),
        (OTHER, OTHER_KEY, "root", "name-taken"),
        (OTHER, OTHER_KEY, "x1", "bad-name"),
        (OTHER, OTHER_KEY, "a/b", "bad-name"),
        (OTHER, OTHER_KEY, "", "bad-name"),
        (MACHINE, OTHER_KEY, "pi7", "uuid-taken"),
        (MACHINE, CLIENT_KEY, "pi7", "Welcome"),
    ],
)
def test_names_and_uuids_are_taken_once(node: bytes, key: bytes, name: str, code: str) -> None:
    root, ident = names_taken()
    assert code == code_of(root.join(ident, node, key, name))


@pytest.mark.proves("SEC-022", part="every code of REFUSED")
def test_a_token_of_another_root_is_unknown_and_one_of_a_lost_secret_proves_nothing() -> None:
    root = Root()
    assert "unknown-token" == code_of(root.join(b"nobody's"))
    digest = b"d" * 32
    root.entries.append((1, to_record(Invitation(b"i" * 8, "sensor", 1, "*", 1 << 62, digest))))
    root.start()
    assert "bad-proof" == code_of(root.join(b"i" * 8))


@pytest.mark.proves("SEC-022", part="the proof is of this connection's keys")
@pytest.mark.parametrize("heard_key, code", [(CLIENT_KEY, "Welcome"), (OTHER_KEY, "bad-proof")])
def test_a_proof_that_was_overheard_is_good_for_no_other_key(heard_key: bytes, code: str) -> None:
    root = Root()
    ident = root.invite()
    secret = invitation_secret(MACHINE_SECRET, ident)
    proof = proof_of(secret, ident, MACHINE, CLIENT_KEY, SERVER_KEY)
    assert code == code_of(root.say(Join(ident, MACHINE, proof, About("pi7")), heard_key))


def test_who_has_proved_no_key_is_refused_without_effect() -> None:
    root = Root()
    ident = root.invite()
    with pytest.raises(PeerError, match="no-key"):
        root.core.receive(Join(ident, MACHINE, b"p" * 32, About("pi7")), Source("enrol", b"peer"), root.now)
    assert [] == root.turn()


@pytest.mark.proves("SEC-022", part="the fifth wrong proof locks")
def test_five_wrong_proofs_lock_also_across_crashes() -> None:
    root = Root()
    ident = root.invite()
    for _ in range(4):
        assert "bad-proof" == code_of(root.guess(ident))
        root.start()
        root.advance(SECOND)
    assert "OPEN" == root.state(ident)
    assert "bad-proof" == code_of(root.guess(ident))
    assert [told.InvitationLocked(ident.hex())] == root.told(told.InvitationLocked)
    assert "revoked" == code_of(root.join(ident))


# Limits


@pytest.mark.proves("SEC-023", part="ten JOINs a second")
def test_the_eleventh_join_of_a_second_waits() -> None:
    root = Root()
    ident = root.invite(uses=100)
    answers = [code_of(root.join(ident, bytes([n] * 16), bytes([n] * 32), f"pi{n}")) for n in range(11)]
    assert ["Welcome"] * 10 + ["busy"] == answers
    root.advance(SECOND)
    assert "Welcome" == code_of(root.join(ident, b"z" * 16, b"z" * 32, "pi-z"))


@pytest.mark.proves("SEC-023", part="twenty wrong proofs a minute")
def test_after_twenty_wrong_proofs_in_a_minute_nobody_joins_for_its_rest() -> None:
    root = Root()
    idents = [root.invite() for _ in range(5)]
    for n in range(20):
        root.advance(SECOND)
        assert "bad-proof" == code_of(root.guess(idents[n % 4]))
    root.advance(SECOND)
    assert "busy" == code_of(root.join(idents[4]))
    root.advance(40 * SECOND)
    assert "Welcome" == code_of(root.join(idents[4]))


@pytest.mark.proves("SEC-023", part="a secret is kept as its SHA-256 only")
def test_no_secret_is_kept_said_or_told() -> None:
    root = Root()
    ident = root.invite()
    root.join(ident)
    secret = invitation_secret(MACHINE_SECRET, ident)
    shown = repr(root.done) + repr(root.entries) + repr(root.core.invitations.kept) + repr(vars(root.core))
    written = b"".join(encode_record(record) for _, record in root.entries)
    assert (False, False) == (repr(secret)[2:-1] in shown, secret in written)
    assert "5e5e" not in repr([each for each in root.done if not isinstance(each, Persist)])


@given(st.lists(st.sampled_from(["join a", "join b", "join c", "again", "guess", "crash", "minute"]), max_size=30))
def test_never_more_join_than_may_and_all_who_did_are_bound(script: list[str]) -> None:
    root = Root()
    ident = root.invite(uses=2)
    for step in script:
        match step.split():
            case ["join", name]:
                letter = name.encode()
                root.join(ident, letter * 16, letter * 32, name)
            case ["again"]:
                root.join(ident, b"a" * 16, b"a" * 32, "a")
            case ["guess"]:
                root.guess(ident)
            case ["crash"]:
                root.start()
            case ["minute"]:
                root.advance(MINUTE)
    kept = root.core.invitations.kept[ident]
    assert len(kept.joined) <= 2
    bound = {key for key, value in root.pairs.items() if value} - {binding_key(ROOT)}
    assert {binding_key(each.node) for each in kept.joined} == bound


# The door


def works(effects: list[Effect]) -> list[str]:
    return [type(each.work).__name__ for each in effects if isinstance(each, Perform)]


def test_the_door_is_open_only_while_somebody_may_come() -> None:
    root = Root()
    assert [] == works(root.done)
    first = root.invite()
    root.invite(for_ns=2 * MINUTE)
    assert ["OpenDoor"] == works(root.done)
    root.join(first)
    root.advance(MINUTE)
    assert ["OpenDoor"] == works(root.done)
    root.advance(2 * MINUTE)
    assert ["OpenDoor", "CloseDoor"] == works(root.done)


def test_the_door_stays_open_a_while_for_who_has_lost_its_welcome() -> None:
    root = Root()
    ident = root.invite()
    root.join(ident)
    root.advance(29 * SECOND)
    assert "Welcome" == code_of(root.join(ident))
    root.advance(SECOND)
    assert ["OpenDoor", "CloseDoor"] == works(root.done)


def test_a_root_that_starts_again_opens_its_door_again() -> None:
    root = Root()
    ident = root.invite()
    root.start()
    assert ["OpenDoor"] == works(root.done)
    assert "Welcome" == code_of(root.join(ident))


def test_a_door_that_cannot_be_opened_takes_the_invitation_back() -> None:
    root = Root()
    root.core.command(Invite(1, "sensor", 1, 15 * MINUTE, "*"), root.now)
    root.core.effects()
    done = root.order(told.DoorIs(0, "somebody listens there"))
    answers = [each.answer for each in done if isinstance(each, Reply)]
    assert ["no-door"] == [answer.code for answer in answers]
    assert ["REVOKED"] == [each.state for each in root.core.invitations.kept.values()]


@pytest.mark.parametrize(
    "order, code",
    [
        (Invite(1, "king", 1, MINUTE, "*"), "bad-role"),
        (Invite(1, "sensor", 0, MINUTE, "*"), "bad-uses"),
        (Invite(1, "sensor", 10_001, MINUTE, "*"), "bad-uses"),
        (Invite(1, "sensor", 1, MINUTE - 1, "*"), "bad-for"),
        (Invite(1, "sensor", 1, 31 * 24 * 60 * MINUTE, "*"), "bad-for"),
        (Invite(1, "sensor", 1, MINUTE, ""), "bad-names"),
        (told.Withdraw(1, "00"), "not-found"),
        (told.RevokeKey(1, "nobody"), "not-found"),
        (told.RevokeKey(1, "root"), "own-key"),
    ],
)
def test_orders_that_make_no_sense_are_refused_by_name(order: Any, code: str) -> None:
    assert [code] == [each.answer.code for each in in_state(State.OPEN)[0].order(order) if isinstance(each, Reply)]


def test_where_a_node_listens_is_answered_by_the_shell() -> None:
    root = Root()
    done = root.order(told.Listen(4, "10.0.0.1"))
    assert [told.ChangeAddress(4, "10.0.0.1")] == [each.work for each in done if isinstance(each, Perform)]
    for order, answer in (
        (told.AddressIs(4, "10.0.0.1", starts=True), told.Listening("10.0.0.1", starts=True)),
        (told.AddressIs(4, "x", starts=False, why="no"), told.EnrolmentRefused("bad-address", "no")),
    ):
        assert [answer] == [each.answer for each in root.order(order) if isinstance(each, Reply)]


@pytest.mark.proves("SEC-002", part="on an open fabric nobody is enrolled")
def test_who_is_no_root_or_has_no_keys_invites_nobody() -> None:
    root = Root()
    root.order(told.StepDown())
    assert ["not-root"] == [
        e.answer.code for e in root.order(Invite(1, "sensor", 1, MINUTE, "*")) if isinstance(e, Reply)
    ]
    core = Enrolment(SETTINGS, ROOT, MACHINE_SECRET, Chance("x"))
    core.command(told.TakeRoot(), START)
    core.command(Invite(1, "sensor", 1, MINUTE, "*"), START)
    assert ["no-keys"] == [each.answer.code for each in core.effects() if isinstance(each, Reply)]


def test_of_many_invitations_the_oldest_that_has_ended_makes_room() -> None:
    root = Root()
    first = root.invite()
    root.order(told.Withdraw(2, first.hex()))
    for _ in range(256):
        root.invite()
    assert (256, False) == (len(root.core.invitations.kept), first in root.core.invitations.kept)
    assert ["too-many"] == [
        e.answer.code for e in root.order(Invite(1, "sensor", 1, MINUTE, "*")) if isinstance(e, Reply)
    ]
    live = list(root.core.condense())
    root.start()
    assert live == list(root.core.condense())


# Keys


@pytest.mark.proves("SEC-024", part="what a binding says, and where it stands")
def test_a_root_writes_its_own_binding_once() -> None:
    root = Root()
    assert ({}, 8) == (dict(root.pairs), len(root.invite()))
    own = decode_binding(root.pairs[binding_key(ROOT)])
    assert (("root", ("collector",), (to_z85(SERVER_KEY),))) == (own.name, own.roles, own.curve)
    root.start()
    assert [] == root.told(told.BindingWanted)


@pytest.mark.proves("SEC-025", part="a root renews what has half of its 90 days left, and nothing that was revoked")
def test_bindings_are_renewed_at_half_of_their_time_unless_revoked() -> None:
    root = Root()
    ident = root.invite(uses=2)
    root.join(ident)
    root.join(ident, OTHER, OTHER_KEY, "other")
    root.order(told.RevokeKey(9, "other"))
    day = 24 * 60 * MINUTE
    root.now = Now(root.now.mono + 46 * day, root.now.wall + 46 * day)
    root.core.wake(root.now)
    root.turn()
    until = 1_795_000_000 + (46 + 90) * 86_400
    assert until == decode_binding(root.pairs[binding_key(MACHINE)]).until
    assert b"" == root.pairs[binding_key(OTHER)]


def test_a_revoked_key_is_answered_when_that_is_durable() -> None:
    root = Root()
    root.join(root.invite())
    root.is_holding = True
    assert [] == [each for each in root.order(told.RevokeKey(9, "pi7")) if isinstance(each, Reply)]
    root.write()
    replies = [each.answer for each in root.turn() if isinstance(each, Reply)]
    assert [told.KeysRevoked(MACHINE.hex(), "pi7")] == replies
    assert [told.KeyRevoked(MACHINE.hex(), "pi7")] == root.told(told.KeyRevoked)


def test_keys_are_shown_by_name_and_what_cannot_be_read_is_none() -> None:
    root = Root()
    root.join(root.invite(), name="a1")
    good = Binding(curve=("A" * 40,), name="zz", roles=("operator",))
    pairs = (
        (binding_key(b"1" * 16, "web"), encode_binding(good)),
        (binding_key(b"2" * 16), b"{}"),
        ("/CONFIG/x", b"1"),
    )
    root.order(told.LearnPairs(pairs))
    shown = next(each.answer for each in root.order(told.ShowKeys(3)) if isinstance(each, Reply))
    assert ["a1", "root", "zz"] == [key.name for key in shown.keys]

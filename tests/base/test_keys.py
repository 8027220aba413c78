"""Whose key is whose, and the one table of what a role may do."""

import pytest

from weft.base.errors import PeerError
from weft.base.keys import (
    ROLES,
    VERBS,
    Binding,
    KeyTable,
    Role,
    binding_key,
    bound_node,
    decode_binding,
    encode_binding,
    may,
)

ALICE, BOB = b"a" * 16, b"b" * 16
ALICE_KEY, BOB_KEY, NEW_KEY = "A" * 40, "B" * 40, "C" * 40

ALLOWED = {
    "sensor": "data document join link log read register snapshot store update",
    "collector": "assign bridge data document join lead link log read register serve snapshot stop store update",
    "operator": "admin assign chain document log read register snapshot stop tap update",
    "service": "chain log read register update",
    "reader": "read snapshot",
    "bridge": "bridge read",
}


@pytest.mark.proves("SEC-026")
@pytest.mark.parametrize("name", ALLOWED)
def test_a_role_may_what_the_table_says_and_nothing_else(name: str) -> None:
    actual = sorted(verb for verb in VERBS if may({ROLES[name]}, verb))
    assert ALLOWED[name].split() == actual


def test_a_verb_without_a_row_and_a_node_without_a_role_are_denied() -> None:
    assert not may(set(Role), "destroy")
    assert [] == [verb for verb in VERBS if may((), verb)]


def test_roles_have_the_numbers_of_tokens() -> None:
    expected = {"sensor": 0, "collector": 1, "operator": 2, "service": 3, "reader": 4, "bridge": 5}
    assert expected == {name: int(role) for name, role in ROLES.items()}


def _binding(*keys: str, **others: object) -> Binding:
    return Binding(**{"curve": keys, "name": "alice", "roles": ("sensor",), **others})  # type: ignore[arg-type]  # of a test


def test_a_binding_is_read_as_it_was_written() -> None:
    binding = _binding(ALICE_KEY, names=("cam-*",), until=1_800_000_000)
    text = b'{"curve":["' + b"A" * 40 + b'"],"name":"alice","roles":["sensor"],"names":["cam-*"],"until":1800000000}'
    assert text == encode_binding(binding)
    assert binding == decode_binding(text)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"[]",
        b'{"curve":[],"name":"a","roles":["sensor"]}',
        b'{"curve":["short"],"name":"a","roles":["sensor"]}',
        b'{"curve":["' + b"A" * 40 + b'","' + b"B" * 40 + b'","' + b"C" * 40 + b'"],"name":"a","roles":["sensor"]}',
        b'{"curve":["' + b"A" * 40 + b'"],"name":"","roles":["sensor"]}',
        b'{"curve":["' + b"A" * 40 + b'"],"name":"a","roles":[]}',
        b'{"curve":["' + b"A" * 40 + b'"],"name":"a","roles":["sensor"],"until":-1}',
        b" " * 40_000,
        b"\xff",
    ],
)
def test_what_is_no_binding_is_refused_by_name(text: bytes) -> None:
    with pytest.raises(PeerError) as refused:
        decode_binding(text)
    assert "bad-binding" == refused.value.code


def test_bindings_stand_at_keys_of_the_configuration() -> None:
    assert "/CONFIG/web/key/" + "61" * 16 == binding_key(ALICE, "web")
    assert ALICE == bound_node("/CONFIG/web/key/" + "61" * 16)
    assert ALICE == bound_node("/CONFIG/global/key/" + "61" * 16)
    others = ["/CONFIG/key/" + "61" * 16, "/CONFIG/web/key/61", "/CONFIG/web/key/" + "61" * 16 + "/x", "/x"]
    assert [None] * 4 == [bound_node(key) for key in others]


def test_both_keys_of_a_node_are_its_own_while_it_changes_them() -> None:
    table = KeyTable.of([(ALICE, _binding(ALICE_KEY, NEW_KEY)), (BOB, _binding(BOB_KEY))])
    owners = [holder and holder.uuid for holder in map(table.find, [ALICE_KEY, NEW_KEY, BOB_KEY, "D" * 40])]
    assert [ALICE, ALICE, BOB, None] == owners


def test_a_key_that_two_nodes_claim_is_nobodys() -> None:
    table = KeyTable.of([(ALICE, _binding(ALICE_KEY)), (BOB, _binding(ALICE_KEY, BOB_KEY))])
    assert [None, BOB] == [holder and holder.uuid for holder in map(table.find, [ALICE_KEY, BOB_KEY])]


def test_a_key_whose_time_is_over_is_nobodys() -> None:
    table = KeyTable.of([(ALICE, _binding(ALICE_KEY, until=100)), (BOB, _binding(BOB_KEY))])
    assert table is table.at(99)
    later = table.at(100)
    assert [None, BOB] == [holder and holder.uuid for holder in map(later.find, [ALICE_KEY, BOB_KEY])]
    assert later is later.at(1 << 39)


def test_a_role_that_this_version_does_not_know_gives_no_right() -> None:
    holder = KeyTable.of([(ALICE, _binding(ALICE_KEY, roles=("wizard", "reader")))]).find(ALICE_KEY)
    assert holder is not None
    assert {Role.READER} == holder.roles


def test_names_limit_a_holder_and_none_do_not() -> None:
    table = KeyTable.of([(ALICE, _binding(ALICE_KEY, names=("cam-*",))), (BOB, _binding(BOB_KEY))])
    alice, bob = table.find(ALICE_KEY), table.find(BOB_KEY)
    assert alice is not None
    assert bob is not None
    assert [True, False, True] == [alice.covers("cam-7"), alice.covers("door"), bob.covers("door")]

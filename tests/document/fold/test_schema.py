"""What a schema may say (DOC-003)."""

import hashlib

import pytest

from tests.document.fold.words import DERBY, PLAIN, Desk
from weft.base.errors import UserError
from weft.cores.document.fold.schema import Schema

CHAIN = '[[chain]]\nref = "a"\ntag = "a"\nkeys = ["k"]\n'
HEAD = 'name = "x"\nroot = "doc"\n'


@pytest.mark.proves("DOC-003", "DOC-050")
def test_the_genesis_of_derby_is_that_of_everybody() -> None:
    expected = "a66c84e620d9dc68362785de4dd7847223e4594948d81231b02002ba86e7cc5f"
    assert expected == DERBY.genesis_sha256 == hashlib.sha256(DERBY.canonical_genesis).hexdigest()
    assert (b"<doc></doc>", "plain", "doc") == (PLAIN.canonical_genesis, PLAIN.name, PLAIN.root)


@pytest.mark.proves("DOC-003")
@pytest.mark.parametrize(
    "text",
    [
        "",
        "nobody",
        "name = ",
        'name = "x"',
        HEAD + "more = 1",
        'name = "x"\nroot = "a b"',
        HEAD + CHAIN.replace('["k"]', "[]"),
        HEAD + CHAIN.replace('["k"]', '["k", "l", "m"]'),
        HEAD + CHAIN.replace('["k"]', '["k", "l"]') + "create = true",
        HEAD + CHAIN + "create = true\nmin = 3\nmax = 2",
        HEAD + CHAIN + CHAIN.replace('ref = "a"', 'ref = "b"'),
        HEAD + CHAIN.replace('ref = "a"', 'ref = "sequence"'),
        HEAD + CHAIN.replace('ref = "a"', 'ref = "path"'),
        HEAD + CHAIN.replace('ref = "a"', 'ref = "1"'),
        HEAD + 'attributes = { eid = "1" }',
        HEAD + 'attributes = { a = "\\u0001" }',
        HEAD + CHAIN + 'create = true\n[[genesis]]\ntag = "a"\nattributes = { k = "0" }',
        HEAD + CHAIN + 'create = true\n[[genesis]]\ntag = "a"\n',
        HEAD
        + CHAIN
        + "create = true\n"
        + "".join(f'[[genesis]]\ntag = "a"\nattributes = {{ k = "{k}" }}\n' for k in "21"),
    ],
)
def test_a_schema_that_means_nothing_is_refused(text: str) -> None:
    with pytest.raises(UserError) as caught:
        Schema.load(text)
    assert caught.value.code == "bad-schema"


@pytest.mark.proves("DOC-003")
def test_a_schema_of_ones_own_in_toml() -> None:
    text = (
        HEAD
        + CHAIN
        + 'create = true\n[[genesis]]\ntag = "a"\nattributes = { k = "2" }\ntext = "t"\nchildren = [{ tag = "b" }]'
    )
    desk = Desk(Schema.load(text))
    desk.set("a", 'a="1"', "x")
    assert desk.document == '<doc><a k="1">x</a><a k="2">t<b></b></a></doc>'
    assert desk.remove("a", 'path="a"') == "applied"
    assert desk.remove("a", 'path="a/b"') == "inert:fixed"

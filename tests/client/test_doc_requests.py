"""Whatever a program asks, a session answers once and goes on."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.client.test_doc_files import NOW, asked, session_of
from tests.examples import examples
from weft.base.effects import Send, Source
from weft.cores.document.context import CLIENTS
from weft.cores.document.serving_edits import EDITS
from weft.cores.document.serving_reads import READS
from weft.cores.document.session import Session
from weft.wire.document.clients import Answer, Asked

NAMES = ["reference", "words", "verb", "xml", "text", "attributes", "by", "resolves", "force", "id", "choice", "value"]
NAMES += ["operations", "closed", "at", "from", "limit", "tail", "source", "of", "eids", "n"]
WORDS = st.sampled_from(
    [
        "add",
        "set",
        "remove",
        "first",
        "period=1",
        "jam=3",
        "jam=0",
        "eid=e",
        "path=/",
        "source=x",
        "sequence=1",
        "=",
        "",
        "<a/>",
        "<a",
        "<a eid='e'/>",
        "&",
        "\x00",
        "\ud7ff",
        "a=b",
    ]
)
PLAIN = st.one_of(
    WORDS,
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([2**63, -(2**62), float("nan"), float("inf"), -1.5, 1e300]),
    st.binary(max_size=4),
)
ANY = st.one_of(PLAIN, st.lists(PLAIN, max_size=3), st.dictionaries(WORDS, PLAIN, max_size=3))
ARGS = st.dictionaries(st.sampled_from(NAMES), ANY, max_size=5)
EDIT = st.fixed_dictionaries(
    {"verb": st.sampled_from(["add", "set", "remove"])},
    optional={
        "words": st.lists(WORDS, max_size=4),
        "reference": st.dictionaries(
            st.sampled_from(["period", "jam", "eid", "path", "source", "key", "a b", ""]), WORDS, max_size=2
        ),
        "xml": WORDS,
        "text": WORDS,
        "attributes": st.dictionaries(WORDS, WORDS, max_size=2),
        "by": WORDS,
        "force": st.booleans(),
    },
)


def answers(session: Session, verb: str, args: dict[str, Any]) -> list[Answer]:
    session.receive(Asked(b"1", verb, "", args), Source(CLIENTS, b"p"), NOW)
    return [effect.message for effect in session.effects() if isinstance(effect, Send) and effect.channel == CLIENTS]


@given(st.sampled_from([*READS, *EDITS, "watch", "undo", "what"]), ARGS)
@examples(300, deadline=None)
def test_any_arguments_are_answered_once(verb: str, args: dict[str, Any]) -> None:
    session = session_of()
    [answer] = answers(session, verb, args)
    assert (answer.id, True) == (b"1", not answer.code or {"text", "mend"} == set(answer.body))
    assert asked(session, "digest")["operations"] == session.log.count


@given(st.lists(EDIT, min_size=1, max_size=4))
@examples(200, deadline=None)
def test_any_entry_is_made_or_refused_and_nothing_else(entries: list[dict[str, Any]]) -> None:
    session = session_of()
    made = 0
    for args in entries:
        [answer] = answers(session, "edit", args)
        made += not answer.code
        assert made == session.log.count
    assert made == len(asked(session, "log")["operations"])


@pytest.mark.parametrize("name", ["source", "timestamp", "sequence", "by", "sig", "attribute"])
def test_a_reference_by_the_name_of_a_stamp_is_refused(name: str) -> None:
    session = session_of()
    args = {"verb": "set", "reference": {"period": "1", name: "x"}, "attributes": {"a": "b"}}
    [answer] = answers(session, "edit", args)
    assert ("bad-reference", 0) == (answer.code, session.log.count)


@pytest.mark.parametrize("verb", ["heard", "end"])
def test_a_word_about_a_watch_that_is_not_there_is_passed_over(verb: str) -> None:
    assert [] == answers(session_of(), verb, {"n": 7})

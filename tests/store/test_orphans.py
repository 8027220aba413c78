"""Changes that a dropped node sets aside, and deletions that it goes on remembering (DEL-003, DEL-006)."""

from typing import Any

import pytest

from tests.store.rig import change
from tests.store.test_deletion import Keeper
from weft.cores.kit.refusals import Refusal
from weft.cores.store import limits
from weft.wire.journal import encode_body


def test_many_orphans_are_kept_in_records_that_a_journal_takes() -> None:
    node = Keeper("c")
    for number in range(400):
        node.write(f"p.{number}", "x" * 50_000)
    node.turn()
    node.hear(change("a:1", 10_000, ":n.dropped.c", {"tick": 1}))
    before = len(node.journal)
    node.until(0)
    encoded = [len(encode_body([record])[0]) for _, record in node.journal[before:]]
    assert 18_000_000 < sum(encoded)
    assert max(encoded) < 2 << 20
    again = Keeper("c", journal=node.journal)
    again.deletion.restore(node.journal)
    assert node.deletion.orphans == again.deletion.orphans
    assert max(len(encode_body([record])[0]) for record in again.deletion.condense()) < 2 << 20


def test_orphans_that_were_written_again_before_a_refusal_are_not_written_twice() -> None:
    node = Keeper("c")
    for path in ("p", "q", "r"):
        node.write(path, 1)
    node.hear(change("a:1", 30, ":n.dropped.c", {"tick": 1}))
    node.until(0)
    write, left = node.replica.write, [1]

    def refused(*words: Any, **how: Any) -> Any:
        if not left:
            raise Refusal("storage-full", "no room")
        left.pop()
        return write(*words, **how)

    node.replica.write = refused  # type: ignore[method-assign]  # room for one
    with pytest.raises(Refusal):
        node.deletion.replay()
    node.turn()
    again = Keeper("c", journal=node.journal)
    again.deletion.restore(node.journal)
    assert ["r"] == [event.path[0] for event in node.deletion.orphans] == [e.path[0] for e in again.deletion.orphans]


@pytest.mark.parametrize("how", ["written again", "forgotten"])
def test_deletions_that_are_none_any_more_are_not_remembered_for_ever(how: str) -> None:
    node = Keeper("a", is_head=False)
    for number in range(3 * limits.BURIED_SPARE):
        node.write(f"p{number % 10}", number)
        node.write(f"p{number % 10}")
        if how == "forgotten":
            node.replica.settle({"a": node.book.present("a")}, "deleted")
    assert len(node.deletion._buried) <= 2 * 10 + limits.BURIED_SPARE
    if how == "written again":
        heads = {event.chain.head for event in node.tree.walk() if event.is_deletion}
        assert 10 == len(heads)
        assert heads <= node.deletion._buried.keys()

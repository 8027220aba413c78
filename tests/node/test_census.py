"""Who votes, and how few may say that they are a majority."""

import json
from typing import Any

import pytest

from weft.node.census import Census, NumberReported, report_of

ROOT, ONE, TWO, THREE, HELPER = (bytes([number]) * 16 for number in range(5))


def place(node: bytes) -> str:
    return f"10.0.0.{node[0] + 1}:1"


def record(node: bytes, level: str = "branch", endpoint: str = "") -> tuple[str, bytes]:
    said = {"endpoint": endpoint or place(node), "level": level, "tier": 1, "parent": "10.0.0.9:1"}
    return f"/TOPO/site/node/{node.hex()}", json.dumps(said).encode()


def census(*voters: bytes) -> Census:
    made = Census()
    made.learn([record(node) for node in voters], 1)
    return made


def gone(node: bytes) -> tuple[str, None]:
    return record(node)[0], None


def test_a_root_that_hears_nobody_remains_one_of_many() -> None:
    made = census(ONE, TWO)
    made.learn([gone(ONE)], 2)
    made.learn([gone(TWO)], 3)
    assert [3, 3] == [made.voters(ROOT), made.voters(ROOT)]
    made.learn([record(HELPER)], 4)
    made.note(HELPER, 4, 1)
    assert [4, 4] == [made.voters(ROOT), made.voters(ROOT)]


def test_a_dead_collector_counts_no_more_when_a_majority_knows() -> None:
    made = census(ONE, TWO, THREE)
    made.learn([gone(ONE)], 2)
    made.note(TWO, 2, 1)
    made.voters(ROOT)
    assert [4, True] == [made.voters(ROOT), made.is_voter(ONE)]
    made.note(THREE, 2, 1)
    made.voters(ROOT)
    assert [3, False] == [made.voters(ROOT), made.is_voter(ONE)]


def test_who_has_promised_its_vote_has_heard_what_its_candidates_have_heard() -> None:
    made = census(ONE, TWO, THREE)
    made.learn([gone(ONE)], 2)
    made.note(TWO, 2, 1)
    made.note(THREE, 2, 1, (ONE,))
    made.voters(ROOT)
    assert [4, True] == [made.voters(ROOT), made.is_voter(ONE)]
    made.note(ONE, 2, 2)
    made.note(THREE, 2, 3, (ONE,))
    made.voters(ROOT)
    assert [3, False] == [made.voters(ROOT), made.is_voter(ONE)]


def test_what_a_node_reports_says_whom_it_has_promised_its_vote() -> None:
    said = {"number": 7, "count": 1, "digest": "ab", "candidates": [TWO.hex()]}
    assert NumberReported(ONE, 7, 1, "ab", (TWO,)) == report_of(ONE, json.dumps(said).encode())
    assert NumberReported(ONE, 7) == report_of(ONE, b'{"number":7}')  # an older one says nothing of it
    assert None is report_of(ONE, b'{"number":7,"candidates":["x"]}')


def test_who_is_back_is_a_voter_as_before() -> None:
    made = census(ONE, TWO)
    made.learn([gone(ONE)], 2)
    made.learn([record(ONE)], 3)
    made.note(TWO, 3, 1)
    made.voters(ROOT)
    assert [3, True] == [made.voters(ROOT), made.is_voter(ONE)]


@pytest.mark.proves("REC-015")
def test_a_root_that_starts_again_still_counts_whom_it_had_removed_unheard() -> None:
    before = census(ONE, TWO, THREE)
    assert None is before.news_of_leaving()
    before.learn([gone(ONE)], 2)
    before.learn([gone(TWO)], 3)
    both = (TWO, place(TWO)), (THREE, place(THREE))
    leaving, earlier = ((ONE, 2), (TWO, 3)), ((2, ((ONE, place(ONE)), *both)), (3, both))
    assert [(leaving, earlier), None] == [before.news_of_leaving(), before.news_of_leaving()]
    made = census(THREE)
    made.recall(leaving)
    made.note(THREE, 3, 1)
    assert [4, 4] == [made.voters(ROOT), made.voters(ROOT)]
    made.note(ONE, 2, 1)
    assert [4, (((TWO, 3),), ())] == [made.voters(ROOT), made.news_of_leaving()]


def test_whoever_is_a_voter_again_is_not_recalled_as_a_removed_one() -> None:
    made = census(ONE, TWO)
    made.recall(((ONE, 2),))
    assert None is made.news_of_leaving()


@pytest.mark.proves("REC-012", "REC-015")
def test_an_earlier_set_of_voters_counts_until_it_can_elect_nobody_any_more() -> None:
    before = census(ROOT, ONE, TWO, THREE)
    before.learn([gone(ONE)], 2)
    before.learn([record(HELPER)], 3)
    (_, earlier) = before.news_of_leaving() or ((), ())
    made = census(TWO, THREE, HELPER)
    made.recall((), earlier)
    both = ((ONE, TWO, THREE), (TWO, THREE))
    assert [4, both] == [made.voters(ROOT), made.electorates(ROOT)]
    made.note(HELPER, 3, 1)
    assert [4, both] == [made.voters(ROOT), made.electorates(ROOT)]
    made.note(TWO, 2, 1)
    assert [4, both[1:]] == [made.voters(ROOT), made.electorates(ROOT)]
    made.note(THREE, 3, 1)
    assert [4, ()] == [made.voters(ROOT), made.electorates(ROOT)]


@pytest.mark.proves("REC-012", "REC-015")
def test_machines_that_got_new_disks_at_once_speak_for_the_former_ones_of_their_addresses() -> None:
    made = census(ROOT, ONE, TWO)
    made.learn([gone(ONE), gone(TWO), record(THREE, endpoint=place(ONE)), record(HELPER, endpoint=place(TWO))], 2)
    assert [5, ((THREE, HELPER),)] == [made.voters(ROOT), made.electorates(ROOT)]
    made.note(THREE, 2, 1)
    assert () == (made.voters(ROOT), made.electorates(ROOT))[1]


def test_a_machine_elsewhere_does_not_speak_for_a_former_voter() -> None:
    made = census(ROOT, ONE, TWO)
    made.learn([gone(ONE), gone(TWO), record(THREE), record(HELPER)], 2)
    made.note(THREE, 2, 1)
    made.note(HELPER, 2, 1)
    assert [5, ((ONE, TWO),)] == [made.voters(ROOT), made.electorates(ROOT)]


def test_the_root_has_one_voice() -> None:
    assert 2 == census(ROOT, ONE).voters(ROOT)


@pytest.mark.proves("FUZ-001", "SEC-042")
@pytest.mark.parametrize("tier", ["first", [1], None, 0], ids=str)
def test_a_record_of_another_shape_made_the_page_of_the_fleet_fail(tier: Any) -> None:
    made = census(ONE)
    key, value = record(TWO)
    made.learn([(key, json.dumps({**json.loads(value), "tier": tier}).encode())], 2)
    assert [ONE.hex()] == [row["node"] for row in made.rows()]
    assert 2 == made.voters(ROOT)

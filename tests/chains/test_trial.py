"""`[[chains.test]]`: filters are tried without a node (CHN-072)."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from weft.base.errors import UserError
from weft.cli import chain
from weft.cores.chains.trial import Outcome, parse_trials, play

PAGE = (Path(__file__).parents[2] / "docs" / "filters.md").read_text("utf-8")
HOT = {"name": "hot", "kind": "match", "types": ["app.x"], "where": {"v": {"gt": 5}}}


def played(filters: list[dict[str, Any]], **test: Any) -> Outcome:
    said = {"name": "t", "type": "app.x", **test}
    specs, trials, mistakes = parse_trials({"chains": {"filter": filters, "test": [said]}})
    assert [] == mistakes
    return play(specs, trials[0])


@pytest.mark.proves("CHN-072")
def test_the_example_of_the_page_is_good_and_with_another_expectation_it_is_not() -> None:
    found = [block for block in re.findall(r"```toml[^\n]*\n(.*?)```", PAGE, re.DOTALL) if "[[chains.test]]" in block]
    assert len(found) > 1
    for text in found:
        filters, trials, mistakes = parse_trials(tomllib.loads(text))
        assert ([], [True]) == (mistakes, [play(filters, trial).is_good for trial in trials]), text
    (text,) = [block for block in found if "only-alarms" in block]
    filters, trials, _ = parse_trials(tomllib.loads(text.replace("sends = [{ level = 5 }]", "sends = []")))
    outcome = play(filters, trials[0])
    assert (False, [{"level": 5}]) == (outcome.is_good, outcome.found["sends"])


@pytest.mark.proves("CHN-072")
@pytest.mark.parametrize("direction", ["in", "out"])
def test_what_passes_is_what_a_reader_behind_all_filters_sees(direction: str) -> None:
    outcome = played(
        [{**HOT, "dir": direction}], dir=direction, send=[{"v": 9}, {"v": 1}, [{"v": 1}, {"v": 7}]], passes=[]
    )
    assert {"passes": [{"v": 9}, [{"v": 7}]]} == outcome.found


def test_time_goes_on_between_two_messages() -> None:
    limit = {"name": "r", "kind": "rate-limit", "types": ["app.x"], "count": 1, "per": "10s"}
    assert [{"n": 1}] == played([limit], send=[{"n": 1}, {"n": 2}], every="9s", passes=[]).found["passes"]
    assert [{"n": 1}, {"n": 2}] == played([limit], send=[{"n": 1}, {"n": 2}], every="10s", passes=[]).found["passes"]


def test_samples_and_texts_are_sent_as_they_are_written() -> None:
    hot = {"name": "hot", "kind": "threshold", "above": 90, "where": {"name": "cpu"}}
    send = [[{"name": "cpu", "value": 91.0}, {"name": "cpu", "value": 3.0}], {"name": "mem", "value": 5}]
    found = played([hot], type="weft.metric", send=send, passes=[]).found["passes"]
    assert [{"name": "cpu", "value": 91.0}, {"name": "mem", "value": 5}] == found
    assert ["<a/>"] == played([], fmt="xml", send=["<a/>"], passes=[]).found["passes"]


def test_at_the_root_the_journal_filter_shows_what_it_has_taken() -> None:
    keep = {"name": "j", "kind": "journal", "types": ["app.x"], "dir": "in"}
    expected = {"journals": [{"v": 1}], "sends": []}
    assert expected == played([keep], dir="in", level="root", send=[{"v": 1}], journals=[], sends=[]).found


@pytest.mark.proves("CHN-072", "CHN-084", part="chain test")
def test_the_command_says_which_test_is_good_and_ends_with_1_if_one_is_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = """
        [[chains.filter]]
        name = "hot"
        kind = "match"
        types = ["app.x"]
        where = { v = { gt = 5 } }
        [[chains.test]]
        name = "one is hot"
        type = "app.x"
        send = [{ v = 9 }, { v = 1 }]
        passes = [{ v = 9 }]
    """
    file = tmp_path / "filters.toml"
    file.write_text(text)
    assert (0, "good   one is hot\n") == (chain.try_filters(file), capsys.readouterr().out)
    file.write_text(text.replace("gt = 5", "gt = 0"))
    assert 1 == chain.try_filters(file, json=True)
    told = json.loads(capsys.readouterr().out)
    assert (False, {"passes": [{"v": 9}, {"v": 1}]}) == (told["good"], told["found"])
    assert 1 == chain.try_filters(file)
    assert "FAILED one is hot" in capsys.readouterr().out
    file.write_text(text.replace("match", "mach"))
    with pytest.raises(UserError) as refused:
        chain.try_filters(file)
    assert ("bad-settings", True) == (refused.value.code, "E04 chains.filter[0].kind" in str(refused.value))


@pytest.mark.parametrize(
    "document, wrong",
    [
        ({}, "E03 chains"),
        ({"chains": {"filter": [HOT]}}, "E03 chains.test"),
        ({"chains": {"test": [{"name": "t", "type": "app.x"}]}}, "E03 chains.test[0].passes"),
        ({"chains": {"test": [{"name": "t", "type": "a", "passes": {}}]}}, "E04 chains.test[0].passes"),
        ({"chains": {"test": [{"name": "t", "type": "a", "passes": [], "sent": []}]}}, "E02 chains.test[0].sent"),
        ({"chains": {"filter": [{**HOT, "kind": "mach"}], "test": [{"name": "t", "type": "a", "passes": []}]}}, "E04"),
    ],
)
def test_every_mistake_of_a_file_of_tests_is_told(document: dict[str, Any], wrong: str) -> None:
    mistakes = parse_trials(document)[2]
    assert mistakes[0].startswith(wrong), mistakes

"""The board's pages in a real browser, beside two real nodes: what is entered is seen, what is tapped is entered."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.interop.chromium import Chromium, Page
from weft.cli.demos.bout import Bout, Laptop, Plan
from weft.client.doc.sync import SyncClient


@pytest.fixture(scope="module")
def bout(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bout]:
    from rich.console import Console

    with Bout(tmp_path_factory.mktemp("bout"), Plan(), Console(quiet=True)) as found:
        yield found


@pytest.fixture
def ann(bout: Bout) -> Laptop:
    return bout.laptops["ann"]


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chromium]:
    with Chromium(tmp_path) as found:
        yield found
        assert [] == found.complaints


def viewer(browser: Chromium, laptop: Laptop) -> Page:
    page = browser.open(f"http://127.0.0.1:{laptop.board}/", 1920, 1080)
    page.until("state.board !== null", "a board")
    return page


def operator(browser: Chromium, laptop: Laptop) -> Page:
    page = browser.open(f"http://127.0.0.1:{laptop.board}/entry#by=Cleo", 1180, 820)
    page.until("state.board !== null && document.querySelector('#main').textContent !== ''", "a board")
    return page


def text(selector: str) -> str:
    return f"document.querySelector({json.dumps(selector)}).textContent"


def points(side: str, value: int) -> str:
    return f".team[data-side={side}] .points button:nth-child({value + 1})"


@pytest.mark.proves("JAM-020")
def test_the_board_of_the_hall_changes_after_an_entry_at_another_node(browser: Chromium, bout: Bout) -> None:
    page = viewer(browser, bout.laptops["bob"])
    before = int(page.run(text("#home .score")))
    bout.laptops["ann"].client.add("period=1 jam=1", '<pass team="home" points="3"/>')
    page.until(f"{text('#home .score')} === '{before + 3}'", "three points more")
    page.until(f"{text('#link')}.startsWith('with ')", "who is connected")


@pytest.mark.proves("JAM-021")
def test_a_board_without_the_other_node_says_how_long_it_has_been_alone(browser: Chromium, bout: Bout) -> None:
    page = viewer(browser, bout.laptops["ann"])
    page.run("state.peers = []; state.alone_since = sessionTime() - 75; tick()")
    assert "alone for 75 s" == page.run(text("#link"))


@pytest.mark.proves("JAM-020")
def test_an_operator_times_a_jam_counts_it_and_takes_something_back(browser: Chromium, ann: Laptop) -> None:
    page = operator(browser, ann)
    page.until("state.board.phase !== 'jam'", "no jam")
    jam = page.run("state.board.jams.upcoming[1]")
    page.tap("#main")
    page.until(f"{text('#main')} === 'End jam {jam}'", "the jam runs")
    for value in (4, 2):
        page.tap(points("away", value))
    page.tap(".team[data-side=away] .lead")
    row = f"state.board.rows.find((row) => row.jam === {jam}).away"
    page.until(f"{row}.points === 6 && {row}.lead", "six points and lead")
    page.tap(".team[data-side=away] .trips button")
    page.until(f"{row}.trips === 1", "one trip taken back")
    page.tap("#main")
    page.until(f"state.board.jams.completed[1] === {jam}", "the jam has ended")
    page.tap("#undo")
    page.until("state.board.phase === 'jam'", "it has not")
    page.tap("#main")
    page.until("state.board.phase !== 'jam'", "now it has")
    last = ann.client.tail(1)[0]
    assert ("set", f"period=1 jam={jam}", "Cleo") == (last.verb, last.reference, last.by)


@pytest.mark.proves("JAM-010")
def test_a_skater_is_entered_lined_up_penalised_and_seated(browser: Chromium, ann: Laptop) -> None:
    page = operator(browser, ann)
    fill = "(() => { const form = document.querySelector('.team[data-side=home] form'); %s form.requestSubmit(); })()"
    page.run(
        fill
        % "const [number, name] = form.querySelectorAll('input'); number.value = '42'; name.value = 'Deep \"<&>\" Thought';"
    )
    skater = "state.board.skaters.home.find((one) => one.number === '42')"
    page.until(f"{skater}.name === 'Deep \"<&>\" Thought'", "the skater")
    button = ".team[data-side=home] .skaters button"
    page.tap(button)
    page.tap("#ask .choices button:nth-child(1)")
    page.until(
        "state.board.rows.some((row) => row.home.lineup.some((one) => one.person === '42' && one.position === 'jammer'))"
    )
    page.tap("#modes [data-mode=penalty]")
    page.tap(button)
    page.tap("#ask .choices button:nth-child(3)")
    page.until(f"{skater}.penalties[0].code === 'L'", "a low block")
    page.tap("#modes [data-mode=box]")
    page.tap(button)
    page.until(f"{skater}.box !== null", "in the box")
    page.tap(button)
    page.until(f"{skater}.box === null", "out of it")


@pytest.mark.proves("JAM-006")
def test_a_jam_that_is_far_ahead_is_asked_about_and_then_made(browser: Chromium, ann: Laptop) -> None:
    page = operator(browser, ann)
    page.tap("#later")
    page.until("pinned !== null")
    jam = page.run("(() => { pinned = [1, pinned[1] + 30]; show(); return pinned[1]; })()")
    page.tap(points("home", 1))
    page.until("document.querySelector('#ask').open", "the question")
    row = f"state.board.rows.some((row) => row.jam === {jam})"
    assert not page.run(row)
    page.tap("#ask .choices button:nth-child(1)")
    page.until(row, "the jam")


@pytest.mark.proves("JAM-021")
def test_a_conflict_is_shown_on_both_boards_and_one_tap_resolves_it(browser: Chromium, bout: Bout) -> None:
    ann, bob = bout.laptops.values()
    for cable in bout.cables:
        cable.cut()
    _set(ann.client, "90")
    _set(bob.client, "91")
    for cable in bout.cables:
        cable.join()
    hall = viewer(browser, bob)
    hall.until(
        f"!document.querySelector('#worries').hidden && {text('#worries')} === '1 conflict'", "the conflict, on bob's"
    )
    page = operator(browser, ann)
    page.until("document.querySelectorAll('#conflicts .sides button').length === 2", "both sides")
    value = page.run(text("#conflicts .sides button b"))
    page.tap("#conflicts .sides button")
    page.until("state.conflicts.length === 0", "none on ann's")
    hall.until("document.querySelector('#worries').hidden", "none on bob's")
    assert [value, value] == [_duration(laptop.client) for laptop in (ann, bob)]


@pytest.mark.proves("JAM-021")
def test_two_leads_of_one_jam_are_a_conflict_and_one_tap_keeps_one_of_them(browser: Chromium, bout: Bout) -> None:
    for cable in bout.cables:
        cable.cut()
    for laptop, side in zip(bout.laptops.values(), ("home", "away"), strict=True):
        laptop.client.add("period=2 jam=8", f'<lead team="{side}"/>')
    for cable in bout.cables:
        cable.join()
    page = operator(browser, bout.laptops["bob"])
    page.until("document.querySelectorAll('#conflicts .sides button').length === 3", "three choices")
    page.tap("#conflicts .sides button")
    row = "state.board.rows.find((row) => row.period === 2 && row.jam === 8)"
    page.until(f"state.conflicts.length === 0 && {row}.home.lead !== {row}.away.lead", "one lead")


def _set(client: SyncClient, duration: str) -> None:
    client.set("period=2 jam=7", {"duration": duration})


def _duration(client: SyncClient) -> Any:
    history = client.element("period=2 jam=7")["history"]
    return [past["value"] for past in history if past["attribute"] == "duration"][-1]


def test_people_talk_across_boards(browser: Chromium, bout: Bout) -> None:
    pages = [operator(browser, laptop) for laptop in bout.laptops.values()]
    pages[0].run("document.querySelector('#chat input').value = 'Ready?'")
    pages[0].run("document.querySelector('#chat form').requestSubmit()")
    pages[1].until("document.querySelector('#chat .list').textContent.includes('Cleo: Ready?')", "the words")


def test_a_page_holds_what_was_tapped_until_the_board_is_there_again(browser: Chromium, ann: Laptop) -> None:
    page = operator(browser, ann)
    before = page.run("state.board.teams.home.score")
    page.run("window.real = window.fetch; window.fetch = () => Promise.reject(new TypeError('no network'))")
    page.tap(points("home", 2))
    page.until("!document.querySelector('#unsent').hidden", "one entry is not sent")
    page.run("window.fetch = window.real")
    page.until(f"state.board.teams.home.score === {before + 2} && document.querySelector('#unsent').hidden", "it is")

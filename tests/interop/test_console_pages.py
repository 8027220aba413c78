"""Pages of the console that show one thing as it was, in a real browser: a document, an entry, a message (CON-002)."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.document.logs import body
from tests.document.rig import B
from tests.interop.chromium import Chromium, Page
from tests.patience import PATIENCE_S
from weft.cli.asking import try_status
from weft.cli.fleet import Fleet, Member
from weft.client.chain.addressing import LOCAL
from weft.client.chain.sync import SyncChain
from weft.client.doc.sync import SyncClient
from weft.client.store.sync import SyncClient as StoreClient
from weft.shell.blocks import free_blocks

FILE = """
[node]
name = "desk"
port = {port}
level = "root"
state = "{state}"

[doc.session.friday]
schema = "derby"
operator = "Ann"
mdns = false

[store]
found = "our house"

[[chains.filter]]
name = "no-small"
kind = "match"
types = ["app.load"]
dir = "out"
when = "size > 1"
"""
NAME = "<img src=x>"
"""What somebody enters to be more than text."""


class Desk:
    """A node with everything that has a page."""

    def __init__(self, place: Path) -> None:
        (self.port,) = free_blocks(1, 18_000)
        self.state, file = place / "state", place / "desk.toml"
        file.write_text(FILE.format(port=self.port, state=self.state), "utf-8")
        self.fleet = Fleet(place)
        self.fleet.add(Member("desk", ("-m", "weft.cli.main", "up", str(file)), self.port))
        ends_at = time.monotonic() + PATIENCE_S
        while not self.is_ready():
            assert time.monotonic() < ends_at, "the node does not come up"

    def is_ready(self) -> bool:
        """Whether its document and its store serve."""
        told = try_status(self.port)
        return told is not None and told["cores"]["store"]["serves"] and (self.state / "doc.endpoint").exists()

    def page(self, browser: Chromium, address: str, width: int = 1440) -> Page:
        return browser.open(f"http://127.0.0.1:{self.port + 6}/console/page.html#{address}", width, 900)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    found = Desk(tmp_path_factory.mktemp("desk"))
    try:
        yield found
    finally:
        found.fleet.stop_all()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chromium]:
    with Chromium(tmp_path) as found:
        yield found
        assert [] == found.complaints


def text(selector: str) -> str:
    return f"document.querySelector({json.dumps(selector)}).textContent"


def press(page: Page, key: str) -> None:
    code = {"ArrowLeft": 37, "ArrowRight": 39}[key]
    for kind in ("keyDown", "keyUp"):
        page.say("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=code)


@pytest.mark.proves(
    "CON-002", part="in a browser: a document at any of its entries, its log and conflicts, by its address"
)
def test_a_document_is_turned_back_to_an_entry_and_its_address_shows_the_same(desk: Desk, browser: Chromium) -> None:
    with SyncClient(desk.state, session="friday") as client:
        client.set("period=1 jam=1", {"duration": 90}, by="Ann")
        client.add("team=home", f'<person number="7" name="{NAME.replace("<", "&lt;")}"/>', by="Ann")
        jam = body(B, 1, "<attribute>duration</attribute>95", at=time.time())
        client.bring([jam.replace(b'path="b"', b'period="1" jam="1" by="Bob"')])
    page = desk.page(browser, "documents")
    page.until(f"{text('#paper')}.includes('duration=\"95\"')", "the document as it is")
    assert page.run(f"{text('#paper')}.includes({json.dumps(NAME.replace('<', '&lt;'))})")
    assert page.run("document.querySelector('#paper img') === null")
    assert "▲" == page.run("document.querySelector('#paper .disputed').textContent[0]")
    assert "“90” by Ann against “95” by Bob" == page.run(text("#quarrels .asks"))
    assert "#documents" == page.run("location.hash")
    page.run("document.querySelector('#place').focus()")
    press(page, "ArrowLeft")
    press(page, "ArrowLeft")
    page.until(f"{text('#said')}.startsWith('After entry 1 of 3')", "the first entry")
    page.until(f"{text('#paper')}.includes('duration=\"90\"')", "the document as it was")
    assert not page.run(f"{text('#paper')}.includes('person')")
    assert "→" == page.run("[...document.querySelectorAll('#entered tr')].at(-1).children[1].textContent")
    again = desk.page(browser, page.run("location.hash.slice(1)"), width=390)
    again.until(f"{text('#paper')} === {json.dumps(page.run(text('#paper')).replace('+', ' '))}", "the same")
    assert again.run("document.documentElement.scrollWidth <= innerWidth")
    again.tap("#quarrels button:last-child")
    again.until(f"{text('#said')}.includes(', by Bob: set period=1 jam=1')", "the other side")


@pytest.mark.proves("CON-002", part="in a browser: an entry of the store is asked for by its address")
def test_an_entry_of_the_store_has_an_address_and_a_lake_without_it_says_why(desk: Desk, browser: Chromium) -> None:
    with StoreClient(f"127.0.0.1:{desk.port + 5}") as client:
        client.set("home.temp", 21)
    page = desk.page(browser, "store?path=home.temp", width=390)
    page.until("document.querySelector('#versions [role=alert]') !== null", "no tables yet")
    assert "home.temp" == page.run("document.querySelector('#path').value")
    page.until("[...document.querySelectorAll('#paths option')].some((option) => option.value === 'home.temp')")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")
    versions = [
        {"value": 21, "from": 2e18, "to": None, "node": "a", "tick": 2, "by": "", "chain": [["a", 2], ["b", 1]]},
        {"deleted": True, "from": 1e18, "to": 1e18, "node": "b", "tick": 1, "by": "bob", "chain": []},
    ]
    shown = page.run(f"{json.dumps(versions)}.map(versionRow).map((row) => [row[0], row[3], row[4], row[5]])")
    assert [["21", "a:2", "b:1", "✔ stands"], ["(deleted)", "b:1 by bob", "", "▲ never stood"]] == shown


@pytest.mark.proves(
    "CON-002", part="in a browser: what each filter does to the next messages of a type; the last traced"
)
def test_messages_are_followed_through_the_filters(desk: Desk, browser: Chromium) -> None:
    page = desk.page(browser, "chains?type=app.load")
    page.until("document.querySelector('#type')?.value === 'app.load'")
    # Of each pair three are traced: both on their way out, and the one that comes in. The trace may begin within a pair.
    page.run("document.querySelector('#count').value = 3")
    page.tap("#extra [type=submit]")
    page.until(f"{text('#trace-note')}.startsWith('waiting')")
    with SyncChain("loads", desk.state) as client:
        while page.run(f"{text('#trace-note')}.startsWith('waiting')"):
            for load in ("1", "22"):
                client.send("app.load", load, to=LOCAL, want="none", fmt="text", keep="memory")
    assert "✔ 3 traced" == page.run(text("#trace-note"))
    rows = "[...document.querySelectorAll('#traces tbody tr')].map((row) => row.children[5].textContent)"
    assert ["no link", "no-small: dropped", "no-small: passed"] == sorted(page.run(rows))
    page.run("location.reload()")
    page.until(f"{text('#traces')}.includes('no-small: passed')", "the last traces are kept")


@pytest.mark.proves("CON-002", part="in a browser: the way of one record, by its address")
def test_the_way_of_a_record_has_an_address(desk: Desk, browser: Chromium) -> None:
    page = desk.page(browser, "chains?record=desk:1", width=390)
    page.until(f"{text('#road h2')}.includes(' of desk: ')", "what the node knows of its first records")
    assert "made" == page.run(text("#road td"))
    assert page.run("document.documentElement.scrollWidth <= innerWidth")

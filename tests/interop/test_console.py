"""The console in a real browser beside a living fleet, of which one machine is killed (CON-005)."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.chromium import Chromium, Page
from tests.interop.picturewords import PICTURE, words_in, words_on
from tests.patience import PATIENCE_S
from weft.cli.asking import order, try_status
from weft.cli.demo import NODES, ROOT, texts
from weft.cli.fleet import Fleet, Member
from weft.shell.blocks import free_blocks

VICTIM = "sensor-4"


class Running:
    """Seven nodes of the demonstration."""

    def __init__(self, place: Path) -> None:
        self.ports = dict(zip(NODES, free_blocks(len(NODES), 17_000), strict=True))
        for file, text in texts(place, self.ports).items():
            (place / file).write_text(text, "utf-8")
        self.fleet = Fleet(place)
        for name in NODES:
            words = ("-m", "weft.cli.main", "up", str(place / f"{name}.toml"))
            self.fleet.add(Member(name, words, self.ports[name]))
        ends_at = time.monotonic() + PATIENCE_S
        while len((try_status(self.ports[ROOT]) or {"tree": []})["tree"]) < len(NODES) - 1:
            assert time.monotonic() < ends_at, "the fleet does not come together"

    def kill(self, name: str) -> None:
        member = next(member for member in self.fleet.members if member.name == name)
        member.wanted = False
        assert member.process is not None
        member.process.send_signal(signal.SIGKILL)


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    found = Running(tmp_path_factory.mktemp("fleet"))
    try:
        yield found
    finally:
        found.fleet.stop_all()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Chromium]:
    with Chromium(tmp_path) as found:
        yield found
        assert [] == found.complaints


def page_of(browser: Chromium, running: Running, name: str = ROOT, width: int = 1440) -> Page:
    return browser.open(f"http://127.0.0.1:{running.ports[name] + 6}/console/", width, 900)


def verdict(words: str) -> str:
    return f"document.querySelector('#verdict').textContent.startsWith({words!r})"


@pytest.mark.proves("CON-001", part="in a browser: numbers, tree, sparklines, strips; a killed machine is named first")
@pytest.mark.proves("CON-005", part="a real browser, a fleet that is killed meanwhile")
@pytest.mark.proves("CON-005", part="the picture in the README has the words of the page as it is")
def test_a_killed_machine_is_named_first_and_why(browser: Chromium, running: Running) -> None:
    page = page_of(browser, running)
    page.until(verdict("✔ All 7 machines are well"))
    assert list(NODES) == sorted(page.run("[...nodes.values()].map((node) => node.name)"), key=NODES.index)
    page.until("[...rows.values()].every((row) => row.meters.cpu.path.getAttribute('d') !== '')", "sparklines of all")
    page.until("[...rows.values()].every((row) => row.kinds.o.getAttribute('d') !== '')", "strips of all")
    page.until("Number(document.querySelector('#received').textContent.replaceAll(',', '')) > 100")
    assert "0" == page.run("document.querySelector('#missing').textContent")
    assert [] == page.run(
        "[...rows.values()].map((row) => row.name).filter((name) => name.scrollWidth > name.clientWidth)"
    )
    running.kill(VICTIM)
    page.until(verdict(f"✖ 1 of 7 machines in trouble: {VICTIM}"))
    page.until(f"document.querySelector('#missing-note').textContent === 'none known; silent: {VICTIM}'")
    assert words_in(PICTURE) == words_on(page), "make picture"
    first = "document.querySelector('#troubles li button')"
    assert ["✖", VICTIM] == page.run(f"[...{first}.children].slice(0, 2).map((part) => part.textContent)")
    assert page.run(f"{first}.children[2].textContent").startswith("silent for ")
    victim = f"[...rows.values()].find((row) => row.name.textContent === '{VICTIM}')"
    assert "3" == page.run(f"{victim}.at.dataset.much")
    of_below = "[...document.querySelectorAll('.row.machine.d2 b')].map((name) => name.textContent)"
    assert VICTIM == page.run(of_below)[0]
    page.until(f"{victim}.kinds['-'].getAttribute('d') !== ''", "its strip says that nothing came")
    page.tap("#troubles li button")
    page.until("document.querySelector('#machine').open && document.querySelector('#cells li') !== null")
    page.until("document.querySelector('#cells').textContent.includes('nothing has come since then')")
    page.until("document.querySelector('#plots figcaption span').textContent.startsWith('last ')", "it has no now")
    page.tap("#numbers a")
    page.until("document.querySelector('#found [role=alert]').textContent.includes(' makes gold.completeness, ')")


@pytest.mark.proves("CON-003", part="by keyboard; a phone needs no scrolling sideways")
def test_by_keyboard_and_on_a_phone(browser: Chromium, running: Running) -> None:
    page = page_of(browser, running, width=390)
    page.until("rows.size === 7")
    assert page.run("document.documentElement.scrollWidth <= innerWidth")

    def press(key: str) -> None:
        page.say("Input.dispatchKeyEvent", type="keyDown", key=key, text=key if len(key) == 1 else "")
        page.say("Input.dispatchKeyEvent", type="keyUp", key=key)

    press("/")
    page.until("document.activeElement.id === 'search'")
    for key in "sensor-2":
        press(key)
    page.until("document.querySelectorAll('.row.machine').length === 1")
    press("Escape")
    page.until("document.querySelectorAll('.row.machine').length === 7")
    press("j")
    page.until("document.activeElement.classList.contains('machine')")
    press("?")
    page.until("document.querySelector('#help').open")


BROKEN = """[...document.querySelectorAll("th, td:not(.long)")].flatMap(({ firstChild: text }) =>
    [...(text?.data ?? "").matchAll(/[^\\s-]+/g)].filter((word) => {
        const range = document.createRange();
        range.setStart(text, word.index);
        range.setEnd(text, word.index + word[0].length);
        return range.getClientRects().length > 1;
    }).map((word) => word[0]))"""
"""Words of tables that are broken in the middle; long ones, such as JSON and keys, may be."""


@pytest.mark.proves("CON-003", part="on a phone no word of a table is broken in the middle")
def test_on_a_phone_no_word_of_a_table_is_broken(browser: Chromium, running: Running) -> None:
    address = f"http://127.0.0.1:{running.ports[ROOT] + 6}/console/page.html"
    for name in ("configuration", "chains", "lake", "node"):
        page = browser.open(f"{address}#{name}", 390, 844)
        page.until("document.querySelectorAll('td').length > 4", name)
        assert [] == page.run(BROKEN)
        assert page.run("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.proves(
    "CON-003", part="in a browser: a new page has the values before it too, whatever came while it was loaded"
)
def test_a_new_page_has_the_values_of_before(browser: Chromium, running: Running) -> None:
    known = "[...nodes.values()].find((node) => node.level === 'root').values.cpu"
    before = page_of(browser, running)
    before.until(f"{known} && {known}.length > 2")
    kept = before.run(known)
    page = page_of(browser, running)
    page.until("rows.size === 7")
    page.until(f"{known}[0] === {kept[0]} && {known}.length >= {len(kept)}")
    assert [7, 1, 3, 4] == page.run("joined([7, 1, 2], [8, 3, 4])")
    assert [7, 1, None, 4] == page.run("joined([7, 1], [9, 4])")
    assert [9_000, 4] == page.run("joined([7, 1], [9000, 4])")
    assert 121 == page.run("joined([7, ...Array(120).fill(1)], [127, 4]).length")
    assert [5, 9] == page.run("joined([7, 1, 2], [5, 9])")


@pytest.mark.proves("CON-001", part="a node that is no root shows the way to it")
def test_a_sensor_shows_itself_and_the_way_to_the_root(browser: Chromium, running: Running) -> None:
    page = page_of(browser, running, "sensor-1")
    page.until("document.querySelector('#elsewhere a') !== null")
    assert f"http://127.0.0.1:{running.ports[ROOT] + 6}/console/" == page.run(
        "document.querySelector('#elsewhere a').href"
    )


@pytest.mark.proves(
    "CON-002", part="in a browser: plots of a machine, by its address; a span that only a lake has says why"
)
def test_a_machine_has_plots_and_an_address(browser: Chromium, running: Running) -> None:
    page = page_of(browser, running)
    page.until("rows.size === 7")
    page.tap(".row.machine")
    page.until("[...document.querySelectorAll('#plots .plot path')].some((path) => path.getAttribute('d') !== '')")
    captions = "[...document.querySelectorAll('#plots figcaption b')].map((word) => word.textContent)"
    assert ["CPU", "memory", "disk", "network"] == page.run(captions)
    assert page.run("location.hash.slice(1) === opened")
    page.run("[...document.querySelectorAll('#spans button')].at(2).click()")
    page.until("document.querySelector('#plots-note').textContent.startsWith('From the lake: ')", "no tables yet")
    assert 4 == len(page.run(captions))


@pytest.mark.proves("CON-002", part="in a browser: the configuration as it was, its differences, and back again")
@pytest.mark.proves("CON-004", part="a change goes the way of the command line, with who and why")
def test_the_configuration_is_rolled_back_from_the_page(browser: Chromium, running: Running) -> None:
    key = "/CONFIG/machines/metric/cpu"
    before = order(running.ports[ROOT], "get", key=key)["pairs"][0][2]
    order(running.ports[ROOT], "set", key=key, value={"detail": "CPU", "rate": "700ms"}, who="test")
    page = browser.open(f"http://127.0.0.1:{running.ports[ROOT] + 6}/console/page.html#configuration", 1440, 900)
    page.until("document.querySelectorAll('.diff li').length === 1")
    assert key == page.run("document.querySelector('.diff b').textContent")
    assert "700ms" in page.run("document.querySelector('.diff ins').textContent")
    page.tap("#extra button")
    page.run("document.querySelector('dialog input').value = 'a test'")
    page.tap("dialog [type=submit]")
    page.until("document.querySelector('#extra .note').textContent.startsWith('✔ 1 key changed')")
    assert before == order(running.ports[ROOT], "get", key=key)["pairs"][0][2]
    assert "console: a test" == order(running.ports[ROOT], "history", subtree=key, count=1)["writes"][0][1]


@pytest.mark.proves("CON-002", part="pages of tables in a browser: configuration, lake, this node; g and a letter")
def test_the_pages_are_reached_by_letters_and_show_what_the_node_knows(browser: Chromium, running: Running) -> None:
    page = page_of(browser, running)
    page.until("document.querySelectorAll('nav a').length === 9")
    for letter in "gc":
        page.run(f"document.dispatchEvent(new KeyboardEvent('keydown', {{key: '{letter}'}}))")
    cells = "[...document.querySelectorAll('td')].map((cell) => cell.textContent)"
    page.until(f"{cells}.includes('/CONFIG/machines/metric/cpu')", "a pair of the configuration")
    assert 7 <= page.run(f"{cells}.filter((text) => text === '✔ as wanted' || text === '◆ behind').length") + 1
    page.run("location.hash = 'lake'")
    page.until(f"{cells}.includes('segments')", "what was drained")
    page.run("location.hash = 'node'")
    page.until(f"{cells}.includes('journal')", "checks of the node")
    page.run("location.hash = 'store'")
    page.until("document.querySelector('main').textContent.includes('does not take part')", "no store here")
    page.run("location.hash = 'attic'")
    page.until("document.querySelector('#link').textContent.includes('no such page')", "no such page")
    browser.complaints = [text for text in browser.complaints if "404" not in text]

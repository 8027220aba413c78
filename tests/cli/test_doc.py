"""`weft doc`: what is typed, what is shown, and the exit status of each outcome, at real sessions."""

import asyncio
import io
import json
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from tests.client.docsession import Hall, until
from tests.patience import PATIENCE_S
from weft.base.errors import UserError
from weft.cli import doc_calls
from weft.cli.doc_join import numeric
from weft.cli.doc_lines import change_lines, conflict_row, event_line
from weft.cli.nouns import app
from weft.client.doc.errors import DocError, error_of
from weft.client.doc.values import Change, Conflict

PENALTY = '<penalty team="home" person="123" code="B"/>'


class Typed:
    """Types commands at the desks of a hall; exit status, and the lines of the output."""

    def __init__(self, hall: Hall, loop: asyncio.AbstractEventLoop, capsys: pytest.CaptureFixture[str]) -> None:
        self.hall, self._loop, self._capsys = hall, loop, capsys
        self.complaint = ""

    def __call__(self, *words: str, desk: int = 0) -> tuple[int, list[str]]:
        return self.plainly(*words, "--node", str(self.hall.desks[desk].state))

    def plainly(self, *words: str) -> tuple[int, list[str]]:
        """Without naming a node."""
        status = app(["doc", *words], exit_on_error=False, print_error=False, result_action="return_value")
        said = self._capsys.readouterr()
        self.complaint = said.err
        return int(status), said.out.splitlines()

    def json(self, *words: str, desk: int = 0) -> Any:
        """What a command says as JSON."""
        status, [line] = self(*words, "--json", desk=desk)
        assert status == 0
        return json.loads(line)

    def soon(self, work: Coroutine[Any, Any, None]) -> None:
        """Have something done beside what is typed next."""
        asyncio.run_coroutine_threadsafe(work, self._loop)

    def quarrel(self) -> None:
        """Two enter different durations while they are cut off from each other."""
        self.hall.cut = True
        self("set", "period=1", "jam=3", "duration=90", "--by", "Ann")
        self("set", "period=1", "jam=3", "duration=95", "--by", "Bob", desk=1)
        self.hall.cut = False
        asyncio.run_coroutine_threadsafe(self._meet(), self._loop).result(PATIENCE_S)

    async def _meet(self) -> None:
        self.hall.pass_by(20)
        await until(lambda: len({desk.session.log.check for desk in self.hall.desks}) == 1)


@contextmanager
def serving(directory: Path, desks: int) -> Iterator[tuple[Hall, asyncio.AbstractEventLoop]]:
    """A hall in a loop and thread of its own."""
    hall, loop = Hall(directory, desks), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(hall.__aenter__(), loop).result(PATIENCE_S)
    try:
        yield hall, loop
    finally:
        asyncio.run_coroutine_threadsafe(hall.__aexit__(), loop).result(PATIENCE_S)
        loop.call_soon_threadsafe(loop.call_later, 0.01, loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@pytest.fixture
def typed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Typed]:
    with serving(tmp_path, 1) as (hall, loop):
        yield Typed(hall, loop, capsys)


@pytest.fixture
def two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Typed]:
    with serving(tmp_path, 2) as (hall, loop):
        yield Typed(hall, loop, capsys)


@pytest.mark.proves("JAM-040")
def test_what_is_typed_is_entered_shown_and_removed(typed: Typed) -> None:
    status, [line] = typed("add", "period=1", "jam=3", PENALTY)
    eid = line.rpartition("eid=")[2]
    assert (0, f"entered as a0000001:1 eid={eid}") == (status, line)
    assert (0, ["entered as a0000001:2"]) == typed("set", f"eid={eid}", "code=C", "--by", "Bea")
    assert (0, ["entered as a0000001:3"]) == typed("set", "path=venue", "--text", "Hall 5")
    assert (0, ['<jam number="3">', f'  <penalty code="C" eid="{eid}" person="123" team="home"/>', "</jam>"]) == typed(
        "show", "period=1", "jam=3"
    )
    status, lines = typed("log", "--tail", "2")
    assert [f"a0000001:2 set eid={eid} code=C by Bea", "a0000001:3 set path=venue 'Hall 5' by Ann"] == [
        line[13:] for line in lines
    ]
    assert (0, ["entered as a0000001:4"]) == typed("remove", f"eid={eid}")
    assert (0, ['<jam number="3"/>']) == typed("show", "period=1", "jam=3")


@pytest.mark.proves("JAM-040", part="undo and redo")
def test_what_was_typed_last_is_taken_back_and_that_again(typed: Typed) -> None:
    typed("add", "period=1", "jam=3", PENALTY)
    typed("set", "period=1", "jam=3", "duration=95")
    assert (0, ["entered as a0000001:3; a0000001:2 is taken back"]) == typed("undo")
    assert 'duration="95"' not in typed("show", "period=1", "jam=3")[1][0]
    assert (0, ["entered as a0000001:4; a0000001:3 is taken back"]) == typed("redo")
    assert 'duration="95"' in typed("show", "period=1", "jam=3")[1][0]
    assert 1 == typed("redo")[0]


def test_an_attribute_called_like_the_next_word_of_a_reference_is_said_apart(typed: Typed) -> None:
    typed("add", "period=1", "timeout")
    assert 0 == typed("set", "period=1", "-a", "jam=3", "-a", "x=1")[0]
    assert ['<period jam="3" number="1" x="1">', "  <timeout/>", "</period>"] == typed("show", "period=1", "--no-eids")[
        1
    ]


def test_standard_input_is_read_where_a_hyphen_stands(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO('<person number="1" name="Ann"/><person number="2"/>'))
    status, [line] = typed("add", "team=home", "-")
    assert (0, 2) == (status, line.count("eid="))


@pytest.mark.parametrize(
    ("words", "status", "mend"),
    [
        (("set", "period=1", "jam=03", "x=1"), 4, "numbers begin at 1"),
        (("set", "team=hom", "x=1"), 4, "team=home, team=away"),
        (("remove", "team=home"), 4, "remove what stands in it"),
        (("remove", "team=home", "person=4444"), 1, "--force"),
        (("set", "venue", "x=1"), 2, "begin with path=/"),
        (("add", "period=1", "<a>"), 2, "in single quotes"),
        (("set", "period=1"), 2, "duration=90"),
        (("show", "period=9", "jam=9"), 1, "weft doc show"),
        (("resolve", "77", "--first"), 1, "weft doc conflicts"),
        (("import", "/nowhere"), 4, "another file"),
    ],
)
def test_what_goes_wrong_says_what_to_do(typed: Typed, words: tuple[str, ...], status: int, mend: str) -> None:
    assert (status, []) == typed(*words)
    assert mend in typed.complaint.partition("try: ")[2]


@pytest.mark.parametrize(
    "words",
    [
        ("set", "period=1", "--jsn"),
        ("export", "bout.foo"),
        ("export", "--foo"),
        ("import", "--foo"),
        ("resolve", "77"),
        ("replay", "--at", "1", "--until", "a:1"),
        ("show", "--at", "soon"),
    ],
)
def test_a_slip_is_told_before_anything_is_done(typed: Typed, words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as caught:
        typed(*words)
    assert "usage" == caught.value.code
    assert 0 == typed.json("digest")["operations"]


def test_no_node_is_status_3(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("WEFT_DOC", "WEFT_NODE"):
        monkeypatch.delenv(name, raising=False)
    assert 3 == app(["doc", "digest"], exit_on_error=False, print_error=False, result_action="return_value")
    assert "weft doc join" in capsys.readouterr().err
    assert 0 == app(["doc", "sessions"], exit_on_error=False, print_error=False, result_action="return_value")


@pytest.mark.proves("JAM-040", "DOC-041")
def test_a_conflict_is_shown_at_both_and_decided_at_one(two: Typed) -> None:
    two.quarrel()
    for desk in (0, 1):
        status, [_, line] = two("conflicts", desk=desk)
        assert (0, True) == (status, "period=1 jam=3 duration  90 (a0000001:1)  95 (a0000002:1)" in line)
    [conflict] = two.json("conflicts")
    assert ("period=1 jam=3", ["", ""]) == (conflict["where"], conflict["shown"])
    assert (0, ["entered as a0000001:2; the conflict is resolved for everybody"]) == two(
        "resolve", conflict["id"][:6], "--first"
    )
    assert (0, ["no conflicts"]) == two("conflicts")
    assert [False] == [row["open"] for row in two.json("conflicts", "--all")]


@pytest.mark.proves("JAM-040")
def test_peers_sources_digest_parked_and_chat_are_shown(two: Typed) -> None:
    typed = two
    typed("set", "eid=e1", "x=1", "--by", "Ann", "--force")
    status, [first, _, peer] = typed("peers")
    assert (0, "1 connected", ["active", "10.0.0.2:50000", "a0000002"]) == (status, first[-11:], peer.split()[:3])
    assert (0, True) == (typed("sources")[0], typed("sources")[1][1].endswith("own    1        -        Ann"))
    status, [line] = typed("parked")
    assert (0, "a0000001:1 set eid=e1 x=1 by Ann (parked)") == (status, line[13:])
    told = typed.json("digest")
    assert (0, [f"{told['digest']}  check {told['check']}, 1 operations"]) == typed("digest")
    assert (0, ["said to 1 node"]) == typed("chat", "hello", "there")
    assert [("a0000001", "hello there")] == [(row["peer"][:8], row["text"]) for row in [typed.json("chat")]]
    assert [("own", 1)] == [(row["state"], row["latest"]) for row in typed.json("sources")]
    status, lines = typed("status")
    assert (0, 6, "1 connected") == (status, len(lines), lines[2].removeprefix("peers      "))
    assert "1 entries of 1 sources" in lines[3]
    assert ("waiting    1 entries for what they refer to", "conflicts  0 open") == (lines[4], lines[5])
    assert 1 == typed.json("status")["operations"]


@pytest.mark.proves("DOC-054", "JAM-040")
def test_the_log_of_an_element_says_who_wrote_what(two: Typed) -> None:
    two.quarrel()
    status, [slot, *lines] = two("log", "period=1", "jam=3")
    assert (0, "/period[1]/jam[3]") == (status, slot)
    assert ["a0000001:1 duration = '90' by Ann", "a0000002:1 duration = '95' (was '90') by Bob"] == [
        line[13:] for line in lines if "duration" in line
    ]


@pytest.mark.proves("JAM-021")
def test_of_two_that_should_be_one_it_is_said_what_they_are(two: Typed) -> None:
    two("add", "path=/", '<period number="3"><jam number="2" eid="j2"/></period>')
    asyncio.run_coroutine_threadsafe(two._meet(), two._loop).result(PATIENCE_S)
    two.hall.cut = True
    for desk, team in enumerate(("home", "away")):
        two("add", "period=3", "jam=2", "lead", f"team={team}", desk=desk)
    two.hall.cut = False
    asyncio.run_coroutine_threadsafe(two._meet(), two._loop).result(PATIENCE_S)
    status, [_, line] = two("conflicts")
    assert (0, ["period=3", "jam=2", "lead"]) == (status, line.split()[2:5])
    assert ("lead team=home" in line, "lead team=away" in line) == (True, True)


@pytest.mark.proves("JAM-040")
def test_who_is_silent_who_that_is_and_who_is_of_another_session_is_shown(two: Typed) -> None:
    session = two.hall.desks[0].session
    two("set", "period=1", "x=1", "--by", "Bob", desk=1)
    asyncio.run_coroutine_threadsafe(two._meet(), two._loop).result(PATIENCE_S)
    two("chat", "hello", desk=1)
    assert ["Bob", "(a0000002)", "says:", "hello"] == two("chat")[1][0].split()[1:]
    two.hall.cut = True
    session.peers.active()[0].is_evasive = True
    session.peers.refuse("10.0.0.9:1", "Hall 5;schema=fair")
    status, [_, _, peer, refused] = two("peers")
    assert (0, "silent", "Bob") == (status, peer.split()[0], peer.split()[-1])
    assert "refused 10.0.0.9:1: it is of another session: 'Hall 5;schema=fair', and here it is 'Hall 5'" == refused


def test_a_watch_whose_node_stops_says_so(two: Typed) -> None:
    two.soon(_stop(two))
    assert (3, []) == two("watch")
    assert "the node has stopped" in two.complaint


async def _stop(typed: Typed) -> None:
    desk = typed.hall.desks[0]
    await until(lambda: desk.session.serving.facts()["watchers"] == 1)
    desk.session.serving.stop()
    desk.turn()


def test_a_hyphen_is_standard_input_and_output_of_files(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    typed("set", "path=venue", "--text", "Hall 5")
    status, lines = typed("export", "-", "--as", "derbyxml")
    assert (0, True) == (status, any("<venue>Hall 5</venue>" in line for line in lines))
    assert typed("export", "-") == typed("export")
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"team,number,name\nhome,1,Ann\n")))
    assert (0, ["-: 1 entry made"]) == typed("import", "-")


@pytest.mark.proves("JAM-040", "DOC-054")
def test_a_watch_prints_a_line_for_each_change(two: Typed) -> None:
    two.soon(_entries(two))
    status, lines = two("watch", "--count", "1")
    assert (0, 1, "set period=1 jam=3 duration=90") == (status, len(lines), lines[0][24:54])


async def _entries(typed: Typed) -> None:
    from weft import doc

    watching = typed.hall.desks[0].session.serving
    await until(lambda: watching.facts()["watchers"] == 1)
    async with doc.Client(typed.hall.desks[1].state) as bob:
        await bob.set("period=1 jam=3", {"duration": 90})


@pytest.mark.proves("GSP-032", "GSP-033", "JAM-040")
def test_a_log_is_exported_verified_replayed_rebuilt_and_imported_elsewhere(two: Typed, tmp_path: Path) -> None:
    typed, file = two, str(tmp_path / "bout.ndjson")
    typed.quarrel()
    told = typed.json("digest")
    assert (0, "ndjson") == (typed("export", file)[0], typed.json("export", file)["as"])
    assert (told["digest"], told["check"], []) == tuple(
        typed.json("verify")[name] for name in ("digest", "check", "faults")
    )
    status, [_, line] = typed.plainly("verify", file)
    assert (0, f"document {told['digest']}") == (status, line)
    status, [line] = typed.plainly("rebuild", "--from", file, "--out", str(tmp_path / "bout.xml"))
    assert (0, f"{told['digest']}  check {told['check']}, 2 operations of Hall 5") == (status, line)
    assert 'duration="95"' in (tmp_path / "bout.xml").read_text()
    status, lines = typed.plainly("replay", "--log", file, "--until", "a0000001:1", "period=1", "jam=3")
    assert (0, ['<jam duration="90" number="3"/>']) == (status, lines)
    assert typed("replay", "--until", "a0000001:1", "period=1", "jam=3") == (status, lines)
    assert (0, ['<jam duration="95" number="3"/>']) == typed("show", "--at", "-0s", "period=1", "jam=3")
    assert (0, [f"{file}: 0 operations taken in, 2 known already"]) == typed("import", file)
    Path(file).write_text("\n".join(Path(file).read_text().splitlines()[:-1]))
    assert 1 == typed.plainly("verify", file)[0]
    assert 4 == typed("import", file)[0]
    assert 0 == typed("import", file, "--partial")[0]


@pytest.mark.proves("JAM-030", "JAM-040")
def test_documents_rosters_and_sheets_go_in_and_out(typed: Typed, tmp_path: Path) -> None:
    bout = '<bout ruleset="X"><period number="1"><jam number="1"><pass team="home" points="4"/></jam></period><venue>H</venue></bout>'
    (tmp_path / "bout.xml").write_text(bout)
    (tmp_path / "roster.csv").write_text("team,number,name\nhome,12,Ann Lee\nhom,1,Bea\n")
    assert (0, [f"{tmp_path}/bout.xml: 3 entries made"]) == typed("import", str(tmp_path / "bout.xml"))
    assert (4, [f"{tmp_path}/roster.csv: 1 entry made"]) == typed("import", str(tmp_path / "roster.csv"))
    assert "team=home, team=away" in typed.complaint
    status, [line] = typed("import", str(tmp_path / "bout.xml"), "--if-empty")
    assert (0, True) == (status, "not taken in" in line)
    assert 0 == typed("export", str(tmp_path / "out.xml"))[0]
    text = (tmp_path / "out.xml").read_text()
    assert (True, False) == ('<person name="Ann Lee" number="12"/>' in text, "eid" in text)
    assert "1,1,home,,4,,,,,," in typed("export", "--as", "csv")[1]
    assert (
        4
        == json.loads("\n".join(typed("export", "--as", "derbyjson")[1]))["periods"][0]["jams"][0]["events"][0][
            "points"
        ]
    )


@pytest.mark.proves("DOC-050")
def test_the_canonical_form_is_what_the_digest_is_of(typed: Typed) -> None:
    typed("set", "path=venue", "--text", "Hall ä")
    [xml] = typed("show", "--c14n")[1]
    assert sha256(xml.encode()).hexdigest() == typed.json("digest")["digest"]


# A node of its own


@pytest.mark.proves("JAM-040")
def test_join_makes_the_settings_of_a_node_and_checks_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    became: list[dict[str, Any]] = []
    monkeypatch.setattr("weft.cli.up.become", became.append)
    words = ["--operator", "Ann", "--peer", "10.0.0.1:50000", "--peer", "10.0.0.2:50000", "--no-mdns", "--name", "a"]
    words += ["--state", str(tmp_path), "--node-port", "23000"]
    app(["doc", "join", "Hall 5", *words], exit_on_error=False, print_error=False, result_action="return_value")
    node = {"name": "a", "level": "root", "runs": [], "beacons": False, "port": 23_000, "state": str(tmp_path)}
    assert node == became[0]["node"]
    assert {
        "schema": "derby",
        "peers": ["10.0.0.1:50000", "10.0.0.2:50000"],
        "listen": "127.0.0.1",
        "mdns": False,
        "operator": "Ann",
        "serve_host": "127.0.0.1",
    } == became[0]["doc"]["session"]["Hall 5"]
    assert "usable" in _said(["doc", "join", "Hall 5", "--check"], capsys)
    for words in (["--listen", "0.0.0.0"], ["--key", "k"], ["--schema", "/nowhere"]):
        with pytest.raises(UserError):
            _said(["doc", "join", "Hall 5", "--check", *words], capsys)
    assert "usable" in _said(["doc", "join", "Hall 5", "--check", "--listen", "0.0.0.0", "--open"], capsys)


@pytest.mark.proves("GSP-050", part="weft doc key new makes the file, and --key takes it")
def test_a_key_is_made_and_taken_in_the_place_of_an_open_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    became: list[dict[str, Any]] = []
    monkeypatch.setattr("weft.cli.up.become", became.append)
    key = tmp_path / "hall5.key"
    assert str(key) in _said(["doc", "key", "new", str(key)], capsys)
    assert (0o600, True) == (key.stat().st_mode & 0o777, "secret-key" in key.read_text())
    words = ["doc", "join", "Hall 5", "--listen", "0.0.0.0", "--key", str(key)]
    assert "usable" in _said([*words, "--check"], capsys)
    _said(words, capsys)
    assert str(key) == became[0]["doc"]["session"]["Hall 5"]["key"]
    assert "security" not in became[0]


def _said(words: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    app(words, exit_on_error=False, print_error=False, result_action="return_value")
    return capsys.readouterr().out


def test_open_is_join_and_an_import_of_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    became: list[dict[str, Any]] = []
    started: list[list[str]] = []
    monkeypatch.setattr("weft.cli.up.become", became.append)
    monkeypatch.setattr("subprocess.Popen", lambda words, **_: started.append(words))
    file = tmp_path / "Friday.xml"
    with pytest.raises(UserError):
        app(["doc", "open", str(file)], exit_on_error=False, print_error=False, result_action="return_value")
    file.write_text("<bout/>")
    words = ["doc", "open", str(file), "--state", str(tmp_path), "--no-mdns"]
    app(words, exit_on_error=False, print_error=False, result_action="return_value")
    assert ["Friday"] == list(became[0]["doc"]["session"])
    assert ["import", str(file), "--session", "Friday", "--node", str(tmp_path), "--if-empty"] == started[0][4:11]
    for bad in ("<html/>", '{"session": "x", "schema": "derby"}\n', "a,b", "<bout><a>x<b/>lost</a></bout>"):
        file.write_text(bad)
        assert 4 == app(words, exit_on_error=False, print_error=False, result_action="return_value")
    assert (1, 1) == (len(became), len(started))


# Lines


def test_what_others_say_moves_no_cursor() -> None:
    bad = "\x1b[2J"
    conflict = Conflict(
        id="1", kind="set-set", slot=bad, attr=bad, first=("a", 1, bad), second=("b", 1, bad), open=True
    )
    lines = [*conflict_row(conflict), event_line({"event": "chat", "peer": "a", "text": bad})]
    lines += change_lines(Change(check="0", added=[bad]))
    assert [] == [line for line in lines if "\x1b" in line]


def test_events_are_told_in_words_as_far_as_they_are_known() -> None:
    gone = {"event": "peer.gone", "peer": "a0000001-0000", "endpoint": "10.0.0.1:1", "why": "silent"}
    assert "a0000001 at 10.0.0.1:1 is gone: silent" == event_line(gone)[13:]
    assert "- says: -" == event_line({"event": "chat"})[13:]
    assert "log.full what=sources" == event_line({"event": "log.full", "what": "sources"})[13:]


def test_a_change_without_an_entry_says_which_places_are_different() -> None:
    change = Change(check="0", added=["/venue"], removed=["eid:1"], changed=["/period[1]"], is_whole=True, more=7)
    assert ["+ /venue", "- eid:1", "~ /period[1]"] == change_lines(change)[2:]


def test_every_code_has_a_status_and_what_helps() -> None:
    assert {1, 2, 3, 4} == {status for status, _ in doc_calls.BY_CODE.values()}
    assert 4 == doc_calls.failed(error_of("odd", None))
    assert isinstance(error_of("odd", None), DocError)


# From a lake


@pytest.mark.proves("GSP-034")
def test_a_document_is_made_again_from_a_lake(two: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from weft.pipeline import documents

    two.quarrel()
    told, log = two.json("digest"), two.hall.desks[0].session.log
    pairs = [log.arrival(place) for place in range(log.count)]
    stored = [documents.Stored(*pair, log.body(*pair), log.kept(*pair).received_ns, None) for pair in pairs]
    there = [documents.Session("Hall 5", "derby", 2, 2, 0), documents.Session("Other", "fair-1", 0, 0, 1)]
    monkeypatch.setattr(documents, "sessions_in", lambda _: there)
    monkeypatch.setattr(documents, "operations_of", lambda _, session: stored if session == "Hall 5" else [])
    status, [line] = two.plainly("rebuild", "--from", str(tmp_path), "--session", "Hall 5")
    assert (0, f"{told['digest']}  check {told['check']}, 2 operations of Hall 5") == (status, line)
    asked = ("--session", "Hall 5", "--until", "a0000001:1")
    status, [line] = two.plainly("rebuild", "--from", str(tmp_path), *asked)
    assert (0, "  1 operations of Hall 5") == (status, line[64:])
    lines = (0, ['<jam duration="90" number="3"/>'])
    assert lines == two.plainly("replay", "--from-lake", str(tmp_path), *asked, "period=1", "jam=3")
    for moment in ("--at", "--as-seen"):
        _, [line] = two.plainly("rebuild", "--from", str(tmp_path), "--session", "Hall 5", moment, "1", "--json")
        told = json.loads(line)
        assert (0, False) == (told["operations"], "check" in told)
    with pytest.raises(UserError, match="exclude one another"):
        two.plainly("rebuild", "--from", str(tmp_path), *asked, "--at", "1")
    with pytest.raises(UserError, match="both say where"):
        two.plainly("replay", "--from-lake", str(tmp_path), "--log", "x")
    assert (4, []) == two.plainly("rebuild", "--from", str(tmp_path))
    assert "'Hall 5', 'Other'" in two.complaint
    assert (4, []) == two.plainly("rebuild", "--from", str(tmp_path), "--session", "Other")
    assert "--schema" in two.complaint


def test_a_peer_that_is_named_is_told_in_numbers_and_a_name_of_nobody_is_refused() -> None:
    assert "127.0.0.1:50000" == numeric("localhost:50000")
    assert "[::1]:50000" == numeric("[::1]:50000")
    for peer in ("10.0.0.1", "host.invalid:x", "10.0.0.1:70000x"):
        with pytest.raises(UserError):
            numeric(peer)

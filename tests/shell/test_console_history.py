"""The past of a machine, what the lake answers the console, and who may ask and change there (CON-002, CON-004)."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.shell.test_console import SENSOR, WALL_S, at, batch, console, speak
from weft.shell.console import limits
from weft.shell.console.commands import BUSY, Commands
from weft.shell.console.feed import Feed
from weft.shell.console.history import SPANS, history, question
from weft.shell.console.lake import SMALLER, Answer, Lake
from weft.shell.console.roads import Roads
from weft.shell.console.routes import Sources, routes_of
from weft.shell.http.gate import Gate
from weft.shell.http.logins import Logins
from weft.shell.http.messages import Request, Routes
from weft.wire.samples import Series

MEMORY = Series("memory_percent", "MEMORY_PERCENT", "basic", {})
NETWORK = [Series("network", "NETWORK", "rate", {"device": name}) for name in ("eth0", "lo")]
WORDS = "import sys; print(sys.argv[-1])"


class Told(Lake):
    """A lake that says what a test says."""

    def __init__(self, *rows: dict[str, Any], error: str = "") -> None:
        super().__init__(Path("lake"), Commands())
        self.answer, self.asked = Answer(list(rows), error), ""

    async def ask(self, query: str, as_of: str = "") -> Answer:
        self.asked = query
        return self.answer


def row(t: int | None, mean: float, p95: float = 9.0) -> dict[str, Any]:
    return {"detail": "MEMORY_PERCENT", "t": t, "mean": mean, "low": 1.0, "high": 99.0, "p95": p95}


def past(lake: Lake, span: str) -> dict[str, Any]:
    shown = console()
    for second in range(0, 130, 5):
        shown.values.note([batch(SENSOR, second, second + 1, (MEMORY, float(second), None))], at(second))
    return asyncio.run(history(shown.values.machines[SENSOR], "s1", span, lake, at(130)))


# The past


@pytest.mark.proves("CON-002", part="history of a machine: ten minutes of the console, with extremes and p95")
def test_ten_minutes_are_those_of_the_console_and_ask_nobody() -> None:
    told = past(lake := Told(), "10m")
    memory = told["metrics"]["memory"]
    assert ("", 26, 120.0, 125.0) == (lake.asked, len(memory["windows"]), memory["p95"], memory["max"])
    assert [WALL_S * 1_000, 0.0, 0.0, 0.0, 0.0] == list(memory["windows"][0])
    assert {"windows": [], "p95": None, "max": None} == told["metrics"]["net"]
    assert 600_000 == told["to"] - told["from"]


@pytest.mark.proves(
    "CON-002", part="longer spans are the lake's, and end with the console's own values, without a seam"
)
def test_a_longer_span_is_of_the_lake_and_goes_on_with_live_values_behind_its_newest_window() -> None:
    minute = WALL_S * 1_000 // 60_000 * 60_000
    told = past(Told(row(minute - 60_000, 40.0), row(minute, 41.0), row(None, 40.5, 77.0)), "1h")
    memory = told["metrics"]["memory"]
    assert [minute - 60_000, minute] == [each[0] for each in memory["windows"][:2]]
    assert 41.0 == memory["windows"][1][1]
    assert (minute + 60_000, 77.0) == (memory["windows"][2][0], memory["p95"])
    assert [each[0] for each in memory["windows"]] == sorted({each[0] for each in memory["windows"]})


def test_a_lake_that_says_nothing_is_named_and_what_is_live_is_shown() -> None:
    told = past(Told(error="there is no lake"), "7d")
    assert "there is no lake" == told["error"]
    assert 1 == len(told["metrics"]["memory"]["windows"])


def test_of_several_network_devices_the_busiest_is_kept() -> None:
    shown = console()
    for second, (wire, loop) in enumerate([(0, 0), (9_000, 100)]):
        shown.values.note(
            [batch(SENSOR, second * 5, second * 2 + 1, (NETWORK[0], wire, None), (NETWORK[1], loop, None))],
            at(second * 5),
        )
    assert 1_800.0 == shown.values.machines[SENSOR].last("net")
    assert "net" not in shown.look(at(6))["nodes"][SENSOR.hex()]["values"]


def test_a_name_of_a_machine_stays_a_name_in_the_question() -> None:
    assert "node = 'o''hara; DROP'" in question("o'hara; DROP", SPANS["1h"], 0)


# The lake


def asked(tmp_path: Path, program: str, *queries: str) -> list[Answer]:
    async def all_of() -> list[Answer]:
        lake = Lake(tmp_path, Commands((sys.executable, "-c", program)))
        return await asyncio.gather(*[lake.ask(query) for query in queries])

    return asyncio.run(all_of())


def test_rows_come_from_a_process_and_a_mistake_is_its_sentence_and_mend(tmp_path: Path) -> None:
    assert [Answer([{"a": 1}])] == asked(tmp_path, WORDS, '[{"a": 1}]')
    program = "import sys; print('weft: no table x\\n  try: y', file=sys.stderr); sys.exit(1)"
    assert [Answer([], "no table x", "y")] == asked(tmp_path, program, "SELECT")


@pytest.mark.proves(
    "CON-002", part="versions of an entry of the store, out of the lake; where there is no lake, it says so"
)
def test_versions_of_an_entry_are_asked_of_the_command_line_and_none_is_no_mistake(tmp_path: Path) -> None:
    def versions(program: str) -> Any:
        lake = Lake(tmp_path, Commands((sys.executable, "-c", program)))
        return json.loads(ask(routes(lake), "/console/versions.json", "path=home.temp").body)

    told = versions("import json, sys; print(json.dumps(sys.argv[1:])); print(7)")
    words = ["store", "history", "--json", "--limit", "200", "--lake", str(tmp_path), "--", "home.temp"]
    assert [words, 7] == told["rows"]
    assert ([], "") == (versions("import sys; sys.exit(1)")["rows"], versions("import sys; sys.exit(1)")["error"])
    assert "could not be asked" in versions("import sys; sys.exit(2)")["error"]
    assert (
        "keeps no lake"
        in json.loads(ask(routes(Lake(None, Commands())), "/console/versions.json", "path=a").body)["error"]
    )
    assert 404 == ask(routes(Lake(None, Commands())), "/console/versions.json").status


def test_an_answer_is_bounded_in_bytes_and_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "ANSWER_BYTES_MAX", 1_000)
    assert [Answer([], "more than 1,000 bytes", SMALLER)] == asked(tmp_path, "print('x' * 10**6)", "SELECT")
    monkeypatch.setattr(limits, "ANSWER_S", 0.2)
    assert [Answer([], "no answer within 0.2 s", SMALLER)] == asked(tmp_path, "import signal; signal.pause()", "SELECT")


@pytest.mark.parametrize(
    "path, query, body",
    [
        ("/console/road.json", "origin=%00&number=1", b""),
        ("/console/versions.json", "path=home%00", b""),
        ("/console/sql.json", "", b'{"query": "SELECT \\u0000"}'),
        ("/console/sql.json", "", b'{"query": "SELECT 1", "as_of": "\\u0000"}'),
    ],
)
def test_a_question_that_no_process_can_be_given_is_answered(
    tmp_path: Path, path: str, query: str, body: bytes
) -> None:
    """A zero byte in an address ended the node, whoever had written it into a page of the web as a picture."""
    commands = Commands((sys.executable, "-c", "print('[]')"))
    found = routes(Lake(tmp_path, commands), roads=Roads(27_500, None, commands))
    assert "zero byte" in json.loads(ask(found, path, query, body).body)["error"]


def test_more_questions_than_may_wait_are_refused_and_the_same_is_asked_once(tmp_path: Path) -> None:
    program = f"open({str(tmp_path / 'asked')!r}, 'a').write('x'); print('[]')"
    answers = asked(tmp_path, program, *["SELECT"] * 10)
    assert [Answer([])] * 8 + [Answer([], BUSY.error, BUSY.mend)] * 2 == answers
    assert "x" == (tmp_path / "asked").read_text()


# Routes and logins


def routes(lake: Lake, logins: Logins | None = None, roads: Roads | None = None) -> Routes:
    shown = console()
    speak(shown, 3, SENSOR)
    shown.look(at(3))
    sources = Sources(shown, Feed(shown, lambda: at(3)), lake, logins or Logins(lambda: 0.0), lambda: None)
    return routes_of(sources._replace(roads=roads))


def ask(found: Routes, path: str, query: str = "", body: bytes = b"", bearer: str = "") -> Any:
    async def handled() -> Any:
        headers = {"authorization": f"Bearer {bearer}"}
        answer: Any = found[path].handle(Request("GET", path, query, headers, body=body))
        return await answer if asyncio.iscoroutine(answer) else answer

    return asyncio.run(handled())


@pytest.mark.proves("CON-002", part="questions to the lake: some by name, any in SQL")
def test_routes_answer_history_and_questions_and_refuse_what_they_do_not_know() -> None:
    found = routes(lake := Told({"n": 7}))
    assert b'"span":"10m"' in ask(found, "/console/history.json", f"node={SENSOR.hex()}").body
    for query in ("", "node=zz", f"node={'ab' * 16}", f"node={SENSOR.hex()}&span=9y"):
        assert 404 == ask(found, "/console/history.json", query).status
    assert [{"n": 7}] == json.loads(ask(found, "/console/lake.json", "ask=missing").body)["rows"]
    assert "completeness" in lake.asked
    assert 404 == ask(found, "/console/lake.json", "ask=attic").status
    assert 200 == ask(found, "/console/sql.json", body=b'{"query": "SELECT 1"}').status
    assert "SELECT 1" == lake.asked
    for body in (b"", b"{}", b'{"query": ""}', b'{"query": "x", "more": 1}', b"[" * 99_999):
        assert 400 == ask(found, "/console/sql.json", body=body).status
    assert "POST" == found["/console/sql.json"].method


@pytest.mark.proves("CON-004", part="a token of weft console login lets its owner write, for a while")
def test_who_has_logged_in_may_write_from_elsewhere_until_it_ends() -> None:
    clock = [0.0]
    gate = Gate("the token")
    gate.logins = Logins(lambda: clock[0])
    found = routes(Told(), gate.logins)
    token = json.loads(ask(found, "/console/login", body=b'{"who": "anna", "for_s": 60}').body)["token"]
    headers = {"authorization": f"Bearer {token}"}
    far = Request("POST", "/order", headers=headers, peer="192.168.1.44")
    assert gate.may_write(far)
    assert not gate.may_write(far._replace(headers={"authorization": f"Bearer {token}x"}))
    assert not gate.may_write(far._replace(headers={}))
    assert b'"anna"' in ask(found, "/console/me", bearer=token).body
    clock[0] = 60.0
    assert not gate.may_write(far)
    assert b"null" in ask(found, "/console/me", bearer=token).body
    for body in (b"", b'{"who": "", "for_s": 1}', b'{"who": "a", "for_s": -1}', b'{"who": "a"}'):
        assert 400 == ask(found, "/console/login", body=body).status


@pytest.mark.proves("CON-004", part="a login is nobody else's, and not longer than it was given for")
def test_who_has_logged_in_logs_in_nobody_and_not_for_longer() -> None:
    clock = [0.0]
    logins = Logins(lambda: clock[0])
    found = routes(Told(), logins)
    token = logins.add("anna", 60)
    body = b'{"who": "root", "for_s": 86400}'
    refused = ask(found, "/console/login", body=body, bearer=token)
    assert (403, "not-allowed") == (refused.status, json.loads(refused.body)["error"])
    clock[0] = 60.0  # what counts then is what let the request in
    assert 200 == ask(found, "/console/login", body=body, bearer=token).status


def test_logins_are_bounded_and_the_one_that_ends_first_goes() -> None:
    logins = Logins(lambda: 0.0)
    tokens = [logins.add(str(number), 10.0 + number) for number in range(65)]
    assert [None, "1", "64"] == [logins.who(tokens[number]) for number in (0, 1, 64)]
    assert None is logins.who("\udcff")


def test_a_login_ends_after_a_day_however_long_it_was_asked_for() -> None:
    clock = [0.0]
    logins = Logins(lambda: clock[0])
    token = logins.add("anna", 1e9)
    found = []
    for clock[0] in (86_399.0, 86_400.0):
        found.append(logins.who(token))
    assert ["anna", None] == found


def test_of_all_pages_together_one_command_runs_at_a_time(tmp_path: Path) -> None:
    mark = tmp_path / "runs"
    program = (
        f"import pathlib, time; m = pathlib.Path({str(mark)!r}); m.mkdir(); time.sleep(0.2); m.rmdir(); print('[]')"
    )

    async def both() -> Any:
        commands = Commands((sys.executable, "-c", program))
        lake, roads = Lake(tmp_path, commands), Roads(27_500, None, commands)
        return await asyncio.gather(lake.ask("SELECT"), roads.of("n", 7))

    assert [([], "", ""), ([[]], "", "")] == asyncio.run(both())

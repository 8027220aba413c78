"""`weft config`, offline on files and online against a node that remembers what it was asked."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.fleet.fleets import EXAMPLE
from weft.base.chance import Chance
from weft.base.effects import Reply
from weft.base.errors import UserError
from weft.base.now import SECOND, Now
from weft.cli import asking, config_store
from weft.cli.config import app, full_key, value_for
from weft.cli.config_store import Running, follow
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import ConfigurationSettings, FollowParent, StepDown, TakeRoot, Write, WriteKeys
from weft.node.deadalerts import newly_dead
from weft.node.fleet import fleet_of
from weft.node.fleetkeys import to_pairs
from weft.shell.http.messages import Response
from weft.shell.orders import Desk

OLD = "[global]\nheartbeat = 60s\n[Web]\n10.1.0.8:55500\ncpu\n[cpu]\nrate = 60s\nmetric = CPU\n"
CPU = '{"detail":"CPU","rate":"1s"}'
DEAD = (
    "the node at 127.0.0.1:27500 refused {}: this would leave an alert that can never fire: /CONFIG/web/alert/full: {}"
)


class Root:
    """A root, asked as over http: the desk of its orders and the core itself, without a socket between."""

    def __init__(self) -> None:
        self.core = Configuration(ConfigurationSettings(), bytes(16), Chance("cli"))
        self.core.root.newly_dead = newly_dead
        self.desk = Desk(self.obey, ("configuration",))
        self.asked: list[dict[str, Any]] = []
        self.wall = 1_795_000_000 * SECOND

    def take(self, epoch: int = 0) -> None:
        self.obey("configuration", TakeRoot(epoch))

    def obey(self, core: str, order: Any) -> None:
        self.wall += SECOND
        now = Now(self.wall, self.wall)
        self.core.command(order, now)
        for effect in self.core.effects():
            if isinstance(effect, Reply):
                self.desk.reply(effect.ticket, effect.answer)

    def order(self, port: int, name: str, **fields: Any) -> dict[str, Any]:
        self.asked.append({"order": name, **fields})
        page = asyncio.run(self._take(json.dumps(self.asked[-1]).encode()))
        if page.status != 200:
            raise asking._refusal(name, port, page.status, page.body)
        told: dict[str, Any] = json.loads(page.body)
        return told

    async def _take(self, body: bytes) -> Response:
        return await self.desk.take(body)

    def put(self, key: str, value: str) -> None:
        self.order(1, "set", key=key, value=value)

    def put_as_clone(self, key: str, value: str) -> None:
        """A write that is not refused, whatever it leaves."""
        self.obey("configuration", WriteKeys(0, (Write(key, value.encode()),), by="clone"))

    @property
    def values(self) -> dict[str, bytes]:
        return {key: value for key, _, value in self.pairs()}

    def pairs(self) -> list[tuple[str, int, bytes]]:
        return [(pair.key, pair.number, pair.value) for pair in self.core.store.view("/CONFIG/")]


@pytest.fixture
def root(monkeypatch: pytest.MonkeyPatch) -> Root:
    made = Root()
    made.take()
    monkeypatch.setattr(asking, "order", made.order)
    monkeypatch.setattr(config_store, "PAGE", 2)
    return made


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "fleet.toml"
    path.write_text(EXAMPLE, "utf-8")
    return path


def run(*words: object) -> int:
    result = app([str(word) for word in words], exit_on_error=False, print_error=False, result_action="return_value")
    return result if isinstance(result, int) else 0


# Files


@pytest.mark.proves("CFG-071", "CFG-072")
def test_check_says_everything_to_the_one_who_looks(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == run("check", file)
    assert "can be used: 2 groups, 17 keys" in capsys.readouterr().out
    file.write_text(EXAMPLE.replace('"10s"', '"soon"').replace("web9.lab", "::9"))
    assert 1 == run("check", file)
    errors = capsys.readouterr().err.splitlines()
    assert [f"{file}:9: E04 metric.nginx_mem.rate", f"{file}:36: E05 group.web.exclude[0]"] == [
        line.partition(": '")[0] for line in errors
    ]
    assert 1 == run("check", file, "--json")
    told = json.loads(capsys.readouterr().out)
    assert (False, ["E04", "E05"]) == (told["usable"], [error["code"] for error in told["errors"]])
    file.write_text('[node]\nname = "r"\n')
    assert 1 == run("check", file)
    assert "weft up FILE --check" in capsys.readouterr().err


@pytest.mark.proves("CFG-072")
def test_print_shows_keys_and_values_as_replicated(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("print", file)
    lines = capsys.readouterr().out.splitlines()
    assert [f"{key} {value.decode()}" for key, value in to_pairs(fleet_of(EXAMPLE, "it"))] == lines
    run("print", file, "--json")
    assert "100ms" == json.loads(capsys.readouterr().out)["/CONFIG/web/metric/net"]["rate"]


@pytest.mark.proves("CFG-072")
def test_diff_of_two_files(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.toml"
    other.write_text(EXAMPLE.replace("fanout = 32\n", "").replace('"2s"', '"1s"'))
    assert 1 == run("diff", file, other)
    expected = ["- /CONFIG/global/heartbeat 2", "+ /CONFIG/global/heartbeat 1", "- /CONFIG/web/fanout 32"]
    assert expected == capsys.readouterr().out.splitlines()
    assert 0 == run("diff", file, file)


@pytest.mark.proves("CFG-072", "CFG-073")
@pytest.mark.parametrize("word", ["convert", "import"])
def test_an_old_file_becomes_toml(word: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    old, new = tmp_path / "old.cfg", tmp_path / "new.toml"
    old.write_text(OLD)
    assert 0 == run(word, old, "-o", new)
    assert ["Web"] == list(fleet_of(new.read_text(), "new").groups)
    assert 0 == run("diff", old, new)
    with pytest.raises(UserError) as refused:
        run(word, old, "-o", new)
    assert "file-exists" == refused.value.code
    capsys.readouterr()
    run(word, old)
    assert new.read_text() == capsys.readouterr().out


@pytest.mark.proves("CFG-071")
@pytest.mark.parametrize("word", ["print", "convert", "load"])
def test_a_file_with_an_error_does_nothing(word: str, file: Path, root: Root) -> None:
    file.write_text(EXAMPLE + "oops")
    with pytest.raises(UserError) as refused:
        run(word, file)
    assert "bad-settings" == refused.value.code
    assert [] == root.asked


def test_a_file_that_is_not_there_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        run("check", tmp_path / "no.toml")
    assert "no-file" == refused.value.code


# A running fleet


@pytest.mark.proves("CFG-022")
def test_a_file_is_loaded_by_what_is_different(file: Path, root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    run("load", file)
    assert dict(to_pairs(fleet_of(EXAMPLE, "it"))) == root.values
    capsys.readouterr()
    file.write_text(EXAMPLE.replace('"100ms"', '"200ms"').replace("fanout = 32\n", ""))
    assert 1 == run("diff", file)
    shown = capsys.readouterr().out
    run("load", file)
    assert f"{shown}{file}: 2 writes, the last is number 19\n" == capsys.readouterr().out
    assert 0 == run("diff", file)
    run("load", file)
    assert "nothing had to change" in capsys.readouterr().out


def test_a_running_fleet_becomes_a_file(
    file: Path, tmp_path: Path, root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    run("load", file)
    root.put("/CONFIG/web/colour", '"blue"')
    run("export", "-o", tmp_path / "new.toml")
    assert "left out: /CONFIG/web/colour: nobody reads it" in capsys.readouterr().err
    assert 0 == run("diff", file, tmp_path / "new.toml")


def test_an_export_says_what_loading_it_would_refuse(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    root.put("/CONFIG/wbe/metric/cpu", CPU)
    run("export")
    assert "cannot be loaded as it is: export:5: E10 group.wbe" in capsys.readouterr().err


@pytest.mark.proves("CFG-022")
def test_values_are_set_read_and_deleted(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    run("set", "web/metric/cpu", '{"rate": "1s", "detail": "CPU"}', "--ttl", "30s", "--if-number", 0)
    expected = {"order": "set", "key": "/CONFIG/web/metric/cpu", "value": CPU, "ttl_s": 30.0, "if_number": 0}
    assert expected == {key: root.asked[-1][key] for key in expected}
    assert "/CONFIG/web/metric/cpu: 1 write, the last is number 1\n" == capsys.readouterr().out
    run("get", "web/metric/cpu")
    assert f"{CPU}\n" == capsys.readouterr().out
    run("get", "web/metric/cpu", "--json")
    assert {"key": "/CONFIG/web/metric/cpu", "number": 1, "value": json.loads(CPU)} == json.loads(
        capsys.readouterr().out
    )
    run("delete", "web/metric/cpu")
    assert {} == root.values
    capsys.readouterr()
    run("delete", "web/metric/cpu")
    assert "there is no /CONFIG/web/metric/cpu: nothing had to change\n" == capsys.readouterr().out
    with pytest.raises(UserError) as refused:
        run("get", "web/metric/cpu")
    assert "no-key" == refused.value.code


@pytest.mark.proves("MET-003", part="an alert of a running fleet that could never fire is refused")
def test_no_write_leaves_an_alert_that_could_never_fire(root: Root) -> None:
    alert, full = "web/alert/full", '{"metric": "disk", "when": "> 90 %"}'
    refused: list[tuple[str, str, str]] = []

    def refuse(*words: object) -> None:
        before = root.values
        with pytest.raises(UserError) as error:
            run(*words)
        assert before == root.values
        refused.append((error.value.code, error.value.text, error.value.try_this))

    refuse("set", alert, full)
    run("set", "web/metric/disk", '{"rate": "1s", "detail": "DISK_PERCENT"}')
    run("set", alert, full)
    refuse("set", alert, '{"metric": "disk", "when": "> 90 GiB"}')
    refuse("set", "web/metric/disk", '{"rate": "1s", "detail": "DISK"}')
    refuse("delete", "web/metric/disk")
    gone, mends = "E07 metric: there is no metric 'disk'", "weft config list web: its metrics and alerts"
    assert [
        ("dead-alert", DEAD.format("set", gone), mends),
        ("dead-alert", DEAD.format("set", "E11 when: DISK_PERCENT is not measured in GiB; DISK_FREE is"), mends),
        ("dead-alert", DEAD.format("set", "E11 when: DISK is not measured in %; DISK_PERCENT is"), mends),
        ("dead-alert", DEAD.format("delete", gone), mends),
    ] == refused
    run("delete", alert)
    run("delete", "web/metric/disk")
    assert {} == root.values


def test_an_alert_that_was_dead_before_keeps_no_other_write_away(root: Root) -> None:
    root.put_as_clone("/CONFIG/web/alert/old", '{"metric":"gone","when":"> 1"}')
    run("set", "web/metric/cpu", CPU)
    run("delete", "web/metric/cpu")
    run("delete", "web/alert/old")
    assert {} == root.values


def test_an_alert_that_was_dead_may_be_dead_for_another_reason_after_a_write(root: Root) -> None:
    root.put_as_clone("/CONFIG/web/alert/old", '{"metric":"disk","when":"> 90 %"}')
    run("set", "web/metric/disk", '{"rate": "1s", "detail": "DISK"}')
    assert "/CONFIG/web/metric/disk" in root.values


@pytest.mark.proves("MET-003", part="a rollback goes through, and names the alerts that it leaves dead")
def test_a_rollback_names_the_alerts_that_can_never_fire_from_then_on(
    root: Root, capsys: pytest.CaptureFixture[str]
) -> None:
    run("set", "web/metric/disk", '{"rate": "1s", "detail": "DISK"}')
    run("set", "web/metric/disk", '{"rate": "1s", "detail": "DISK_PERCENT"}')
    run("set", "web/alert/full", '{"metric": "disk", "when": "> 90 %"}')
    capsys.readouterr()
    run("rollback", 1, "web/metric/disk")
    printed = capsys.readouterr()
    assert b'"DISK"' in root.values["/CONFIG/web/metric/disk"], "what is done at night to mend a fleet is not refused"
    assert "1 write, the last is number 4" in printed.out
    assert "an alert can never fire now: /CONFIG/web/alert/full: E11 when: DISK is not measured in %" in printed.err
    assert "try: weft alerts" in printed.err
    run("rollback", 3, "web", "--json")
    assert [] == json.loads(capsys.readouterr().out)["dead"]
    run("rollback", 1, "web/metric/disk", "--json")
    assert 1 == len(json.loads(capsys.readouterr().out)["dead"])


@pytest.mark.proves("CFG-022")
def test_lists_come_page_by_page_and_by_path(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    for name in "abcde":
        root.put(f"/CONFIG/web/metric/{name}", CPU)
    root.put("/CONFIG/web1/metric/a", CPU)
    root.put("/app/x", "1")
    run("list", "web")
    assert 5 == len(capsys.readouterr().out.splitlines())
    run("list")
    assert 6 == len(capsys.readouterr().out.splitlines())
    run("list", "/", "--json")
    assert 7 == len(json.loads(capsys.readouterr().out))
    run("list", "web/metric/a")
    assert [f"/CONFIG/web/metric/a {CPU}"] == capsys.readouterr().out.splitlines()


@pytest.mark.proves("CFG-022")
@pytest.mark.proves("OPS-005", part="a rollback to a write that is not there says which are")
def test_history_and_rollback(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    for rate in ("1s", "2s", "3s"):
        run("set", "web/metric/cpu", json.dumps({"detail": "CPU", "rate": rate}))
    capsys.readouterr()
    run("history", "web", "--limit", 2)
    lines = capsys.readouterr().out.splitlines()
    assert ["3", "2"] == [line.split()[0] for line in lines]
    assert lines[0].endswith('{"detail":"CPU","rate":"2s"} -> {"detail":"CPU","rate":"3s"}')
    run("rollback", 1, "web/metric/cpu")
    assert CPU.encode() == root.values["/CONFIG/web/metric/cpu"]
    with pytest.raises(UserError) as refused:
        run("rollback", 99, "web")
    assert refused.value.text.endswith("there is no write 99 to go back to: the history has 0 to 4")
    assert "weft config history lists the writes, newest first" == refused.value.try_this
    run("rollback", 0, "web")
    assert {} == root.values
    run("history", "--json")
    assert "/CONFIG/web/metric/cpu" == json.loads(capsys.readouterr().out.splitlines()[-1])[0]["key"]


def test_watch_tells_what_is_another_one_at_each_look(root: Root) -> None:
    def writes() -> Iterator[None]:
        root.put("/CONFIG/web/fanout", "1")
        yield
        yield
        root.put("/CONFIG/web/fanout", "2")
        yield
        root.order(1, "delete", key="/CONFIG/web/fanout")
        yield

    seen = [[(change.old, change.new) for change in found] for found in follow(Running(1), ["/CONFIG/web/"], writes())]
    assert [[], [], [("1", "2")], [("2", "")]] == seen


@pytest.mark.proves("CFG-021")
def test_a_refusal_names_the_root(monkeypatch: pytest.MonkeyPatch) -> None:
    sensor = Root()
    monkeypatch.setattr(asking, "order", sensor.order)
    sensor.take()
    sensor.put("/TOPO/root", '{"endpoint":"10.0.0.1:27500"}')
    sensor.obey("configuration", StepDown())
    sensor.obey("configuration", FollowParent("10.0.0.1:27500", ("/CONFIG/web/",), serves=False))
    with pytest.raises(UserError) as refused:
        run("set", "web/fanout", "3", "--port", 27510)
    assert "refused" == refused.value.code
    assert "10.0.0.1:27500" in refused.value.text
    assert "10.0.0.1:27500" in refused.value.try_this


@pytest.mark.proves("CFG-022")
def test_a_write_that_somebody_else_was_faster_with_is_refused(root: Root) -> None:
    root.put("/CONFIG/web/fanout", "3")
    with pytest.raises(UserError) as refused:
        run("set", "web/fanout", "4", "--if-number", 0)
    assert ("refused", True) == (refused.value.code, "weft config get" in refused.value.try_this)
    assert b"3" == root.values["/CONFIG/web/fanout"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("web/metric/cpu", '{ "rate" : 1, "detail" : "CPU" }', '{"detail":"CPU","rate":1}'),
        ("global/heartbeat", "250ms", "0.25"),
        ("global/heartbeat", "2", "2"),
        ("web/parent", "site", '"site"'),
        ("web/members", '["web*"]', '["web*"]'),
        ("/app/text", "ü 10s", '"ü 10s"'),
        ("/app/number", "12.50", "12.5"),
        ("/app/null", "null", "null"),
        ("/app/no-number", "NaN", '"NaN"'),
        ("/app/too-large", "1e999", '"1e999"'),
    ],
)
def test_a_value_is_json_or_text(key: str, value: str, expected: str) -> None:
    assert expected == value_for(full_key(key), value)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("web/metric/cpu", "10s"),
        ("web/metric/cpu", '{"detail":"CPUU","rate":1}'),
        ("web/colour", "blue"),
        ("web/members", "web*"),
        ("web/members", '["::1"]'),
        ("web/collectors", '["web*"]'),
        ("web/fanout", "many"),
        ("web/fanout", "0"),
        ("global/colour", "1"),
        ("global/heartbeat", "9h"),
        ("global/dead_after", "1"),
        ("/TOPO/root", "{}"),
        ("/app/x", "9" * 5_000),
        ("/app/x", "[" * 100_000),
    ],
)
def test_what_no_node_could_use_is_not_sent(key: str, value: str, root: Root) -> None:
    if key != "/app/x":
        with pytest.raises(UserError) as refused:
            run("set", key, value)
        assert "bad-value" == refused.value.code
        assert [] == root.asked
    else:  # an application's own text
        run("set", key, value)
        assert json.dumps(value) == root.asked[-1]["value"]


@pytest.mark.parametrize("key", ["", "a b", "a//b", "x/", "ü"])
def test_what_is_no_key_is_refused(key: str, root: Root) -> None:
    with pytest.raises(UserError) as refused:
        run("set", key, "1")
    assert "bad-key" == refused.value.code
    assert [] == root.asked


@pytest.mark.parametrize("words", [("set", "a/fanout", "1", "--ttl", "soon"), ("watch", "--every", "never")])
def test_times_that_are_none(words: tuple[str, ...], root: Root) -> None:
    with pytest.raises(UserError) as refused:
        run(*words)
    assert "usage" == refused.value.code
    assert [] == root.asked


def test_control_characters_of_a_value_never_reach_the_terminal(root: Root, capsys: pytest.CaptureFixture[str]) -> None:
    root.put("/app/x", '"\x9b2J"')
    run("get", "/app/x")
    assert '"\\x9b2J"\n' == capsys.readouterr().out


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("web/metric/cpu", "5s", """it has to be a table like {"a": 1}, not a text"""),
        ("web/members", "10.0.0.0/24", """it has to be a list like ["a", "b"], not a text"""),
        ("web/fanout", "many", "it has to be a whole number, not a text"),
        ("global/name", "7", "it has to be a text, not a whole number"),
    ],
)
def test_a_value_of_another_type_is_refused_in_words(key: str, value: str, expected: str) -> None:
    with pytest.raises(UserError) as refused:
        value_for(f"/CONFIG/{key}", value)
    assert expected in refused.value.text

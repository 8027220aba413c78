"""`weft get`, `set`, `del`, `ls`, `watch`: what is typed, what is shown, and the exit status of each outcome."""

import asyncio
import io
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.client.storeserver import FakeStore
from tests.patience import PATIENCE_S
from weft.base.errors import UserError
from weft.cli import store_calls
from weft.cli.nouns import app
from weft.cli.store_lines import document, line, plain
from weft.client.store.errors import StoreError, error_of
from weft.wire.store.pack import PathValue, ext
from weft.wire.store.yamltext import load


@contextmanager
def serving() -> Iterator[FakeStore]:
    """A fake store in a loop and thread of its own."""
    server, loop = FakeStore(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(PATIENCE_S)
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(server.kill)
        loop.call_soon_threadsafe(loop.call_later, 0.01, loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@pytest.fixture(scope="module")
def server() -> Iterator[FakeStore]:
    """One for all tests: each has paths of its own."""
    with serving() as server:
        yield server


class Typed:
    """Types commands at one store; exit status, and the lines of both outputs."""

    def __init__(self, server: FakeStore, capsys: pytest.CaptureFixture[str]) -> None:
        self.server, self._capsys = server, capsys

    def __call__(self, *words: str, node: str = "") -> tuple[int, list[str]]:
        status = app(
            [*words, "--node", node or self.server.address],
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
        said = self._capsys.readouterr()
        self.complaint = said.err
        return int(status), said.out.splitlines()


@pytest.fixture
def typed(server: FakeStore, capsys: pytest.CaptureFixture[str]) -> Typed:
    return Typed(server, capsys)


@pytest.mark.proves("ADM-020")
def test_a_value_that_is_typed_reads_as_yaml(typed: Typed) -> None:
    for text, shown in [
        ("21.5", "21.5"),
        ("-5", "-5"),
        ("true", "true"),
        ("null", "null"),
        ("warm", "warm"),
        ("'12'", "'12'"),
        ("[1, {a: b}]", "- 1\n- a: b"),
    ]:
        assert (0, []) == typed("set", "yaml.v", text)
        assert (0, shown.splitlines()) == typed("get", "yaml.v")
    assert [1, {"a": "b"}] == json.loads(typed("get", "yaml.v", "--json")[1][0])["value"]


@pytest.mark.proves("ADM-020")
def test_text_yaml_and_paths_are_said_by_flags(typed: Typed, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (0, []) == typed("set", "flag.v", "-v", "12")
    assert (0, ["'12'"]) == typed("get", "flag.v")
    assert (0, ["12"]) == typed("get", "flag.v", "--raw")
    assert (0, []) == typed("set", "flag.e", "-e", "!hex 00:ff")
    assert {"b64": "AP8="} == json.loads(typed("get", "flag.e", "--json")[1][0])["value"]
    assert (0, []) == typed("set", "flag.p", "-p", "a.b:1")
    assert (0, ["!P a.b:1"]) == typed("get", "flag.p")
    monkeypatch.setattr("sys.stdin", io.StringIO("{big: 1}"))
    assert (0, []) == typed("set", "flag.s", "-")
    assert (0, ["big: 1"]) == typed("get", "flag.s")


def test_the_bytes_of_a_file_are_a_value_and_come_back_as_they_were(
    server: FakeStore, tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    (tmp_path / "key").write_bytes(bytes(range(256)))
    at = ("--node", server.address)
    for words in (("set", "file.v", "-b", str(tmp_path / "key")), ("get", "file.v", "--raw")):
        assert 0 == app([*words, *at], exit_on_error=False, print_error=False, result_action="return_value")
    sys.stdout.flush()
    assert bytes(range(256)) == capfdbinary.readouterr().out


@pytest.mark.parametrize("port", ["0", "-5", "65527"])
def test_a_port_that_cannot_be_one_is_a_wrong_use(port: str) -> None:
    with pytest.raises(UserError) as refused:
        app(["get", "p", "--port", port], exit_on_error=False, print_error=False, result_action="return_value")
    assert "usage" == refused.value.code


def test_what_is_too_large_is_said_to_be(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    async def refuse(*_: Any) -> int:
        raise StoreError("70005 bytes, 65536 at most", "too-large")

    monkeypatch.setattr(store_calls, "_at_store", refuse)
    assert 2 == store_calls.at_store(None, None, refuse)
    assert "weft: that is too large: 70005 bytes, 65536 at most" == capsys.readouterr().err.splitlines()[0]


@pytest.mark.parametrize(
    "words, code",
    [
        (("set", "u.p"), "usage"),
        (("set", "u.p", "1", "-v", "2"), "usage"),
        (("set", "u.p", "{"), "bad-yaml"),
        (("set", "u.p", "-p", "a:zz"), "bad-path"),
        (("set", "u.p", "1", "--if-chain", "nonsense"), "usage"),
        (("set", "u.p", "1", "--new", "--if-chain", "a:1"), "usage"),
        (("del", "u.p", "--tree", "--if-value", "1"), "usage"),
        (("watch", "u.p", "--since", "nonsense"), "usage"),
        (("watch", "u.p", "--count", "0"), "usage"),
        (("set", "u.p", "--nwe"), "usage"),
        (("set", "u.p", "-b", "/nowhere/at/all"), "usage"),
        (("get", "u.p", "--port", "31000"), "usage"),
    ],
)
@pytest.mark.proves("ADM-020")
def test_wrong_use_says_what_to_type(typed: Typed, words: tuple[str, ...], code: str) -> None:
    with pytest.raises(UserError) as refused:
        typed(*words)
    assert (code, True) == (refused.value.code, bool(refused.value.try_this))


@pytest.mark.proves("ADM-020")
def test_what_is_not_found_is_status_1_and_says_whether_it_was_deleted(typed: Typed) -> None:
    assert (1, []) == typed("get", "gone.never")
    assert "none was ever written\n  try: weft ls gone.never --tree" in typed.complaint
    typed("set", "gone.v", "1")
    assert (0, []) == typed("del", "gone.v")
    assert (1, []) == typed("get", "gone.v")
    assert "it was deleted" in typed.complaint
    assert (1, []) == typed("del", "gone.v")
    status, [told] = typed("get", "gone.v", "--json")
    assert (1, "gone.v", False) == (status, json.loads(told)["path"], "value" in json.loads(told))
    assert (1, ["0 deleted"]) == typed("del", "gone", "--tree")


@pytest.mark.proves("ADM-020", "STO-036")
def test_a_condition_that_fails_is_status_1(typed: Typed) -> None:
    status, [told] = typed("set", "cond.v", "1", "--new", "--json")
    [[node, tick]] = json.loads(told)["chain"]
    assert (0, True) == (status, json.loads(told)["changed"])
    assert (1, []) == typed("set", "cond.v", "2", "--new")
    assert (1, []) == typed("set", "cond.v", "2", "--if-chain", f"{node}:{tick - 1}")
    assert (1, []) == typed("del", "cond.v", "--if-value", "'1'")
    status, [chain] = typed("set", "cond.v", "2", "--if-chain", f"{node}:{tick}", "--chain")
    assert (0, ["2", f"# {chain}"]) == typed("get", "cond.v", "--chain")
    assert (0, 2) == (status, json.loads(typed("del", "cond.v", "--if-value", "2", "--json")[1][0])["tock"] - tick)


def test_what_stands_below_a_path_is_listed(typed: Typed) -> None:
    for path in ("list.a.x", "list.b:1", "list"):
        typed("set", path, "1")
    typed("set", "list.c", "-e", "{k: [!P x.y]}")
    typed("del", "list.a.x")
    assert (0, ["list.b", "list.c"]) == typed("ls", "list")
    assert (0, ["list.a", "list.b", "list.c"]) == typed("ls", "list", "--deleted")
    assert (0, ["list 1", "list.b:1 1", 'list.c {"k": [{"path": "x.y"}]}']) == typed("ls", "list", "--tree")
    status, lines = typed("ls", "list.b", "--tree", "--json")
    assert (0, [("list.b:1", 1)]) == (status, [(told["path"], told["value"]) for told in map(json.loads, lines)])
    assert (0, ['["list.b:1"]']) == typed("ls", "list.b", "--json")
    assert (0, []) == typed("ls", "nowhere")
    assert (0, ["3 deleted"]) == typed("del", "list", "--tree")


@pytest.mark.proves("ADM-020")
def test_no_store_is_status_3_and_an_unanswered_write_status_5(typed: Typed) -> None:
    assert (3, []) == typed("get", "p", node="127.0.0.1:1")
    assert "no store answers at 127.0.0.1:1: Connection refused\n  try: weft up" in typed.complaint
    assert (3, []) == typed("get", "p", node="nobody")
    typed.server.dies_at = "set_value"
    assert (5, []) == typed("set", "dies.v", "1")
    assert "try: weft get PATH" in typed.complaint
    assert (2, []) == typed("get", "a:zz")


@pytest.mark.parametrize(
    "code, expected",
    [
        ("not-authorised", 4),
        ("read-only", 4),
        ("storage-full", 4),
        ("exists", 1),
        ("not-ready", 3),
        ("unanswered", 5),
        ("unsupported", 2),
    ],
)
@pytest.mark.proves("ADM-020")
def test_every_outcome_has_its_status(code: str, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(*_: Any) -> int:
        raise StoreError("no", code)

    monkeypatch.setattr(store_calls, "_at_store", refuse)
    assert expected == store_calls.at_store(None, None, refuse)


def test_errors_of_servers_are_sentences() -> None:
    assert "Entry is new at a" == str(error_of("chain-mismatch", "ClientChainError('Entry is new at a')"))
    assert """it's "x\"""" == str(error_of("", """ClientError("it's "x\\"")""".replace("\\", "")))


@pytest.mark.proves("ADM-020")
def test_a_watch_prints_a_line_for_each_change(typed: Typed) -> None:
    typed("set", "watch.a", "1")
    typed("set", "watch.b", "[1]")
    status, lines = typed("watch", "watch", "--fetch", "--count", "2")
    assert {"--:--:--"} == {text.split(" ", 1)[0] for text in lines}
    assert (0, ["watch.a 1", "watch.b [1]"]) == (status, [text.split(" ", 1)[1].partition(" #")[0] for text in lines])
    before = len(typed.server.journal)
    typed("set", "watch.a", "2")
    typed("del", "watch.a")
    status, lines = typed("watch", "watch", "--since", str(before), "--count", "2", "--json")
    told = [json.loads(text) for text in lines]
    assert [("change", "watch.a", 2, before + 1), ("change", "watch.a", "none", before + 2)] == [
        (one["event"], one["path"], one.get("value", "none"), one["position"]) for one in told
    ]


@pytest.mark.parametrize(
    "value, as_json, on_a_line",
    [
        (b"\xff", {"b64": "/w=="}, "!hex ff"),
        (PathValue(("a", 1)), {"path": "a:1"}, "!P a:1"),
        ({1: "x"}, {"map": [[1, "x"]]}, '{"map": [[1, "x"]]}'),
        ([float("nan")], [{"float": "nan"}], '[{"float": "nan"}]'),
        (1 << 70, 1 << 70, str(1 << 70)),
        ("two\nlines", "two\nlines", '"two\\nlines"'),
    ],
)
def test_every_value_has_a_line_and_a_json(value: Any, as_json: Any, on_a_line: str) -> None:
    assert as_json == plain(value)
    assert on_a_line == line(value)
    assert 1 == len(line(value).splitlines())


def test_what_is_printed_can_be_typed() -> None:
    for value in ("12", "", "on", None, 1.5, [1, {"a": b"x"}], PathValue(("a", "b c"))):
        assert value == load(document(value))
    assert {"ext": [5, "eA=="]} == plain(ext(5, b"x"))
    assert document(ext(5, b"x"))

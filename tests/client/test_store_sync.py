"""The store for scripts that wait, and which store is meant."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.client.storeserver import FakeStore
from tests.patience import PATIENCE_S
from weft import store
from weft.client.store.finding import DEFAULT, address_of, endpoint_of


@contextmanager
def serving() -> Iterator[tuple[FakeStore, asyncio.AbstractEventLoop]]:
    """A fake store in a loop and thread of its own."""
    server, loop = FakeStore(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    asyncio.run_coroutine_threadsafe(server.start(), loop).result(PATIENCE_S)
    try:
        yield server, loop
    finally:
        loop.call_soon_threadsafe(server.kill)
        loop.call_soon_threadsafe(loop.call_later, 0.01, loop.stop)
        thread.join(PATIENCE_S)
        loop.close()


@pytest.mark.proves("CLN-030")
def test_a_script_reads_and_writes() -> None:
    with serving() as (server, _), store.SyncClient(server.address) as client:
        assert "a" == client.name
        first = client.set("p.q", 1)
        assert [1, store.MISSING, 7] == [client.get("p.q"), client.get("x"), client.get("x", 7)]
        assert first.chain == client.entry("p.q").chain
        with pytest.raises(store.Exists):
            client.set("p.q", 2, new=True)
        client.set("p.r", 3)
        assert [["q", "r"], [("p.q", 1), ("p.r", 3)]] == [
            client.list("p"),
            [(e.text, e.value) for e in client.tree("p")],
        ]
        assert client.delete("p.q", prev=1).is_changed
        assert 1 == client.delete_tree("p")
        assert {"nodes": {"a": 4}} == client.state("nodes")


@pytest.mark.proves("CLN-030")
def test_a_script_watches_in_a_loop_and_leaves_it() -> None:
    with serving() as (server, loop), store.SyncClient(server.address) as client:
        changes = client.watch("h")
        for number in range(3):
            loop.call_soon_threadsafe(server.put, ("h", "n"), number)
        seen = []
        for change in changes:
            seen.append(change.value)
            if change.value == 2:
                break
        assert [0, 1, 2] == seen


def test_a_loop_that_is_left_after_its_client_ends_quietly() -> None:
    with serving() as (server, loop):
        with store.SyncClient(server.address) as client:
            changes = client.watch("h")
            loop.call_soon_threadsafe(server.put, ("h", "n"), 1)
            assert 1 == next(changes).value
        changes.close()  # type: ignore[attr-defined]  # a generator


def test_a_script_holds_a_mirror() -> None:
    with serving() as (server, loop), store.SyncClient(server.address) as client:
        client.set("h.a", 1)
        with client.mirror("h") as home:
            called: list[str] = []
            home.on_change(lambda change: called.append(change.text))
            loop.call_soon_threadsafe(server.put, ("h", "b"), 2)
            home.until(lambda mirror: "h.b" in mirror)
            assert [2, 2, {("h", "a"), ("h", "b")}, True] == [home["h.b"], len(home), set(home), home.is_fresh]
            assert home.entry("h.x") is None
            assert ["h.b"] == called


def test_a_script_is_told_that_nobody_is_there() -> None:
    with serving() as (server, _):
        address = server.address
    with pytest.raises(store.Unreachable), store.SyncClient(address):
        pass


# Which store


@pytest.fixture
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The state base of a user."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    for name in ("WEFT_NODE", "WEFT_STORE"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "weft" / "lab"


@contextmanager
def node_in(directory: Path) -> Iterator[str]:
    """A state directory whose store somebody listens for."""
    directory.mkdir(parents=True)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        endpoint = f"127.0.0.1:{listening.getsockname()[1]}"
        (directory / "store.endpoint").write_text(f"{endpoint}\n")
        yield endpoint


def test_a_store_is_said_by_address_port_directory_or_name(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with node_in(base / "a") as a, node_in(base / "b") as b:
        assert [a, a, a, b] == [
            endpoint_of(base / "a"),
            endpoint_of(str(base / "a")),
            endpoint_of("a"),
            endpoint_of("b"),
        ]
        assert ("10.0.0.7", 1) == address_of("tcp://10.0.0.7:1")
        assert ("::1", 27_505) == address_of("[::1]:27505")
        assert ("127.0.0.1", 27_515) == address_of("27515")
        with pytest.raises(store.Unreachable, match="a port is a number from 1 to 65535"):
            address_of("127.0.0.1:99999")
        monkeypatch.setenv("WEFT_NODE", "a")
        assert a == endpoint_of(None)
        monkeypatch.setenv("WEFT_STORE", "b")
        assert b == endpoint_of(None)
        monkeypatch.delenv("WEFT_STORE")
        monkeypatch.setenv("WEFT_NODE", "ipc:///chains.sock")
        assert DEFAULT == endpoint_of(None)


def test_without_a_word_it_is_the_only_store_that_runs_here_else_the_usual_port(base: Path) -> None:
    assert DEFAULT == endpoint_of(None)
    with node_in(base / "a") as a:
        assert a == endpoint_of(None)
        with node_in(base / "b"):
            assert DEFAULT == endpoint_of(None)
        assert a == endpoint_of(None)
        (base / "b" / "store.endpoint").write_text(DEFAULT)
        assert DEFAULT == endpoint_of(None)


def test_what_is_not_found_is_said(base: Path) -> None:
    (base / "a").mkdir(parents=True)
    for word, says in ((base / "a", "store.endpoint"), ("b", "no node called 'b'")):
        with pytest.raises(store.Unreachable) as refused:
            endpoint_of(word)
        assert says in refused.value.text
    (base / "a" / "store.endpoint").write_text("nonsense")
    with pytest.raises(store.Unreachable):
        endpoint_of("a")
    (base.parent / "other" / "c").mkdir(parents=True)
    with node_in(base / "c") as c:
        (base.parent / "other" / "c" / "store.endpoint").write_text(c)
        with pytest.raises(store.Unreachable) as refused:
            endpoint_of("c")
        assert "several nodes" in refused.value.text

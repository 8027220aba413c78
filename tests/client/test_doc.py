"""The client of documents: what it asks, what it makes of answers, and what it says when the node goes away."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.client.docnode import FakeNode
from tests.client.node import in_loop
from tests.patience import TRY_S
from weft import doc
from weft.client.doc import finding
from weft.client.doc.client import batches
from weft.client.doc.finding import endpoint_of
from weft.wire.document.clients import Answer, Asked

WRITTEN = {"source": "a0", "sequence": 7, "outcome": "applied", "hidden_by": "", "eids": ["e1"]}


def refused(code: str) -> Any:
    return lambda asked: Answer(asked.id, {"text": "no", "mend": "this"}, code)


@in_loop
async def test_what_is_asked_names_session_and_arguments_and_the_answer_is_typed(tmp_path: Path) -> None:
    async with FakeNode(tmp_path, edit=lambda _: WRITTEN) as node:
        async with doc.Client(node.endpoint, session="S") as client:
            told = await client.add("period=1 jam=3", "<penalty/>", by="Ann")
        asked = node.heard[-1]
    assert doc.Written(source="a0", sequence=7, outcome="applied", eids=["e1"]) == told
    assert told.is_applied
    assert ("edit", "S") == (asked.verb, asked.session)
    assert {"verb": "add", "reference": {"period": "1", "jam": "3"}, "xml": "<penalty/>", "by": "Ann"} == {
        name: value for name, value in asked.args.items() if value
    }


@in_loop
@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("too-large", doc.TooLarge),
        ("storage-full", doc.StorageFull),
        ("no-board", doc.DocError),
        ("not-found", doc.NotFound),
        ("bad-key", doc.BadReference),
        ("unknown-team", doc.BadReference),
        ("bad-attribute", doc.NoEffect),
    ],
)
async def test_each_refusal_is_an_error_of_its_own_with_a_mend(
    code: str, kind: type[doc.DocError], tmp_path: Path
) -> None:
    async with FakeNode(tmp_path, set=refused(code), edit=refused(code)) as node, doc.Client(node.endpoint) as client:
        with pytest.raises(kind) as caught:
            await client.set("venue", text="x")
    assert (code, "no", "this") == (caught.value.code, caught.value.text, caught.value.mend)


@in_loop
async def test_nobody_there_is_unreachable_at_once(tmp_path: Path) -> None:
    with pytest.raises(doc.Unreachable):
        async with doc.Client(f"ipc://{tmp_path / 'doc.sock'}"):
            pass


@in_loop
async def test_a_directory_without_a_note_is_unreachable_and_one_with_a_note_is_found(tmp_path: Path) -> None:
    with pytest.raises(doc.Unreachable):
        endpoint_of(tmp_path)
    (tmp_path / "doc.endpoint").write_text("ipc:///x\n")
    assert "ipc:///x" == endpoint_of(tmp_path)


def test_the_only_node_that_runs_here_is_meant_and_of_several_one_must_be_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("WEFT_DOC", raising=False)
    monkeypatch.delenv("WEFT_NODE", raising=False)
    with pytest.raises(doc.Unreachable):
        endpoint_of(None)
    monkeypatch.setattr("weft.client.link.finding.is_live", lambda endpoint: endpoint != "ipc:///dead")
    for name, endpoint in {"a": "ipc:///a", "b": "ipc:///dead"}.items():
        (tmp_path / "weft" / "weft" / name).mkdir(parents=True)
        (tmp_path / "weft" / "weft" / name / "doc.endpoint").write_text(endpoint)
    assert "ipc:///a" == endpoint_of(None)
    (tmp_path / "weft" / "weft" / "b" / "doc.endpoint").write_text("ipc:///b")
    with pytest.raises(doc.Unreachable) as caught:
        endpoint_of(None)
    assert "several-nodes" == caught.value.code
    assert "ipc:///b" == endpoint_of("b")


def test_a_node_with_a_state_directory_of_its_own_is_found_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "base"))
    monkeypatch.setattr("weft.client.link.finding.is_live", lambda _endpoint: True)
    for name in ("gone", "fst"):
        state = tmp_path / name
        state.mkdir()
        (state / "doc.endpoint").write_text(f"ipc:///{name}")
        finding.note({"node": {"name": name, "state": str(state)}, "doc": {"session": {}, "timing": {}}})
        if name == "gone":
            (state / "doc.endpoint").unlink()
            state.rmdir()
    assert "ipc:///fst" == endpoint_of("fst") == endpoint_of(None)
    assert ["fst"] == [path.name for path in finding.alive()]
    assert ["fst"] == [path.name for path in (tmp_path / "base/weft/doc/elsewhere").iterdir()]


@in_loop
async def test_a_read_is_said_again_to_the_node_that_came_back_and_a_write_is_not(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, doc.Client(node.endpoint) as client:
        read, write = asyncio.ensure_future(client.status()), asyncio.ensure_future(client.chat("hello"))
        await node.hears("status")
        await node.hears("chat")
        node.die()
        with pytest.raises(doc.Unanswered):
            await write
        node.table["status"] = lambda _: {"operations": 3}
        node.live()
        assert {"operations": 3} == await read
        assert 1 == sum(asked.verb == "chat" for asked in node.heard)


@in_loop
async def test_what_was_never_said_is_unreachable_and_not_unanswered(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, doc.Client(node.endpoint, timeout=0.2) as client:
        node.die()
        first = asyncio.ensure_future(client.status())
        with pytest.raises((doc.Unreachable, doc.Unanswered)):
            await first
        with pytest.raises(doc.Unreachable):
            await client.chat("hello")


@in_loop
async def test_no_answer_is_unanswered(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, doc.Client(node.endpoint, timeout=TRY_S) as client:
        with pytest.raises(doc.Unanswered):
            await client.chat("hello")


@in_loop
async def test_who_waits_when_the_client_is_closed_is_told(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node:
        async with doc.Client(node.endpoint) as client:
            waiting = asyncio.ensure_future(client.digest())
            await node.hears("digest")
        with pytest.raises(doc.Closed):
            await waiting


@in_loop
async def test_a_document_comes_in_pieces_and_anew_when_it_changes_between_them(tmp_path: Path) -> None:
    xml = {"d1": b"<a>one</a>", "d2": b"<a>\xc3\xa4</a>"}
    now = iter(["d1", "d2", "d2"])

    def show(asked: Asked) -> Any:
        of = asked.args.get("of") or next(now)
        if of == "d1" and "of" in asked.args:
            return Answer(asked.id, {"text": "it has changed"}, "changed")
        begin = asked.args.get("from", 0)
        return {"xml": xml[of][begin : begin + 4], "size": len(xml[of]), "of": of}

    async with FakeNode(tmp_path, show=show) as node, doc.Client(node.endpoint) as client:
        assert "<a>ä</a>" == await client.show()


ROW = {
    "eff": 1.5,
    "verb": "add",
    "reference": "path=venue",
    "by": "",
    "outcome": "applied",
    "received_at": 1,
    "received_from": "a0",
    "body": b"<add/>",
}


def log_of(total: int) -> Any:
    def log(asked: Asked) -> Any:
        begin = total - asked.args["tail"] if "tail" in asked.args else asked.args.get("from", 0)
        end = min(begin + 2, total)
        rows = [{**ROW, "source": "a0", "sequence": number + 1} for number in range(begin, end)]
        return {"operations": rows, "next": end, "total": total}

    return log


@in_loop
async def test_a_log_comes_page_by_page(tmp_path: Path) -> None:
    async with FakeNode(tmp_path, log=log_of(5)) as node, doc.Client(node.endpoint) as client:
        assert [1, 2, 3, 4, 5] == [operation.sequence async for operation in client.log()]
        assert [3, 4, 5] == [operation.sequence for operation in await client.tail(3)]


@in_loop
async def test_operations_are_brought_in_in_pieces_and_counted(tmp_path: Path) -> None:
    def bring(asked: Asked) -> Any:
        return {"taken": len(asked.args["operations"]) - 1, "known": 1, "refused": 0}

    async with FakeNode(tmp_path, **{"import": bring}) as node, doc.Client(node.endpoint) as client:
        assert {"taken": 68, "known": 2, "refused": 0} == await client.bring([b"x"] * 70)
    assert [1, 2] == [len(batch) for batch in batches([b"x" * 400_000, b"y" * 200_000, b"z" * 200_000])]


def change(n: int, **more: Any) -> dict[str, Any]:
    return {"n": n, "check": f"{n:08x}", **more}


@in_loop
async def test_a_watch_tells_changes_and_says_how_far_it_was_read(tmp_path: Path) -> None:
    async with FakeNode(tmp_path) as node, doc.Client(node.endpoint, session="S") as client:
        watch = client.watch()
        begun = asyncio.ensure_future(watch.__aenter__())
        peer, asked = await node.hears("watch")
        node.says(peer, Answer(asked.id, {"n": 1}, more=True))
        await begun
        node.says(peer, Answer(asked.id, change(2, added=["eid:e1"]), more=True))
        told = await anext(watch)
        assert (["eid:e1"], False) == (told.added, told.is_whole)
        heard: dict[str, Any] = {}
        while heard.get("n") != 2:
            heard = (await node.hears("heard"))[1].args
        watch.close()
        assert asked.id == (await node.hears("end"))[1].id
        assert [] == [told async for told in watch]


@in_loop
async def test_a_watch_goes_on_at_the_node_that_came_back_and_says_that_something_may_be_missing(
    tmp_path: Path,
) -> None:
    async with FakeNode(tmp_path) as node, doc.Client(node.endpoint) as client:
        watch = client.watch()
        first = asyncio.ensure_future(anext(watch))
        peer, asked = await node.hears("watch")
        node.says(peer, Answer(asked.id, change(1), more=True))
        assert not (await first).is_whole
        node.die()
        node.live()
        peer, asked = await node.hears("watch")
        node.says(peer, Answer(asked.id, change(1), more=True))
        assert (await anext(watch)).is_whole


@in_loop
async def test_a_refused_watch_raises_and_one_that_the_node_ends_ends(tmp_path: Path) -> None:
    async with FakeNode(tmp_path, watch=refused("busy")) as node, doc.Client(node.endpoint) as client:
        with pytest.raises(doc.DocError):
            await anext(client.watch())
        node.table["watch"] = lambda asked: Answer(asked.id, {}, more=False)
        assert [] == [told async for told in client.watch()]


def test_a_script_waits_for_each_call(tmp_path: Path) -> None:
    import threading

    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    node = FakeNode(tmp_path, edit=lambda _: WRITTEN, log=log_of(3), status=lambda _: {"operations": 3})
    asyncio.run_coroutine_threadsafe(node.__aenter__(), loop).result(10)
    try:
        with doc.SyncClient(node.endpoint) as client:
            assert 3 == client.status()["operations"]
            assert client.set("period=1 jam=3", {"duration": 90}).is_applied
            assert client.edit("remove", ["eid=e1"]).is_applied
            assert [1, 2, 3] == [operation.sequence for operation in client.log()]
    finally:
        asyncio.run_coroutine_threadsafe(node.__aexit__(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)
        loop.close()

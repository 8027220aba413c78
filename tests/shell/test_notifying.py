"""How people outside are told of alerts: what a webhook, a mail server and a program get, and which failures end (MET-004)."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

import weft
from tests.client.node import until
from tests.fabric.receivers import Hook, MailServer
from tests.patience import PATIENCE_S
from tests.shell.ports import free_port
from weft.base.errors import UserError
from weft.cores.alerts.core import Alerts
from weft.cores.alerts.messages import Notice, NoticeFailed, NoticeSent, SendNotice
from weft.node.notifytable import MailTable, MessageTable, NotifyTable
from weft.node.settings import settings_of
from weft.shell.blocks import free_blocks
from weft.shell.notifying import Notifying, letter
from weft.shell.ownmessages import send_own
from weft.shell.process import Process
from weft.wire.alerts import Alert

pytestmark = pytest.mark.proves("MET-004", part="webhook, mail and command")

ALERT = Alert(
    name="full",
    node="pi",
    metric="disk",
    labels={"mount": "/"},
    value=93.5,
    unit="%",
    when="> 90 %",
    limit=90,
    severity="critical",
    text="mend it",
    since=1_795_000_000_000,
)
NOTICE = Notice(
    number=3,
    sink="ops",
    what="raised",
    ident="00112233aabbccdd",
    fleet="lab",
    alert=ALERT,
    at=1_795_000_000_000,
    made_at=1_795_000_000_500,
)
WORK = SendNotice(NOTICE, 7)
SENT = NoticeSent("ops", 3, 7)


def outcome(sink: NotifyTable, work: SendNotice = WORK) -> Any:
    return Notifying(lambda *_: None, {"ops": sink}).outcome(work)


def made(place: Path, notify: dict[str, Any] | None = None) -> Process:
    node = {"name": "n1", "level": "root", "state": str(place), "port": free_blocks(1, 14_000)[0]}
    return Process(settings_of({"node": node, "fleet": {"beacon_port": free_port()}, "notify": notify or {}}))


def mail(port: int) -> MailTable:
    return msgspec.convert({"smtp": f"127.0.0.1:{port}", "from": "weft@lab.example", "to": ["a@b.example"]}, MailTable)


def test_a_webhook_gets_what_is_known_as_json() -> None:
    with Hook() as hook:
        sink = NotifyTable(webhook=f"http://127.0.0.1:{hook.port}/x", headers={"Authorization": "Bearer abc"})
        assert SENT == outcome(sink)
    expected = {
        "id": "00112233aabbccdd",
        "event": "raised",
        "text": "raised: critical: pi: full: mend it (mount /, disk 93.5 %, > 90 %)",
        "fleet": "lab",
        "alert": "full",
        "node": "pi",
        "metric": "disk",
        "labels": {"mount": "/"},
        "value": 93.5,
        "unit": "%",
        "when": "> 90 %",
        "limit": 90,
        "severity": "critical",
        "says": "mend it",
        "since": "2026-11-18T11:06:40.000+00:00",
        "at": "2026-11-18T11:06:40.000+00:00",
        "why": "",
    }
    assert [expected] == hook.posted
    assert "Bearer abc" == hook.headers[0]["Authorization"]


@pytest.mark.parametrize(
    "status, is_final", [(400, True), (413, True), (302, False), (401, False), (404, False), (429, False), (500, False)]
)
def test_a_webhook_that_refuses_this_very_message_is_not_asked_again(status: int, is_final: bool) -> None:
    with Hook(status=status) as hook:
        told = outcome(NotifyTable(webhook=f"http://127.0.0.1:{hook.port}/x"))
    assert (NoticeFailed, is_final, True) == (type(told), told.is_final, str(status) in told.why)


def test_nobody_who_listens_is_a_failure_that_says_so() -> None:
    for sink in (NotifyTable(webhook=f"http://127.0.0.1:{free_port()}/"), NotifyTable(mail=mail(free_port()))):
        told = outcome(sink)
        assert (False, True) == (told.is_final, "refused" in told.why)


def test_a_mail_has_the_same_id_each_time_and_names_of_others_begin_no_line_of_its_head() -> None:
    bad = msgspec.structs.replace(ALERT, node="pi\r\nBcc: x@y", name="f\nX: 1")
    work = SendNotice(msgspec.structs.replace(NOTICE, alert=bad), 8)
    with MailServer() as server:
        assert SENT == outcome(NotifyTable(mail=mail(server.port)))
        assert NoticeSent("ops", 3, 8) == outcome(NotifyTable(mail=mail(server.port)), work)
    (first, one), (second, two) = server.mails
    assert (["a@b.example"], ["a@b.example"]) == (first, second)
    assert "<00112233aabbccdd.raised@weft.invalid>" == one["Message-ID"] == two["Message-ID"]
    assert "[lab] critical raised: pi: full" == one["Subject"]
    assert (None, None) == (two["Bcc"], two["X"])
    assert "severity: critical" in letter(mail(25), NOTICE).get_content()


def test_a_program_reads_the_json_and_has_to_end_with_0(tmp_path: Path) -> None:
    file = tmp_path / "told"
    script = f"import sys; open({str(file)!r}, 'w').write(sys.stdin.read()); sys.exit(int(sys.argv[1]))"
    assert SENT == outcome(NotifyTable(command=(sys.executable, "-c", script, "0")))
    (line,) = file.read_text("utf-8").splitlines(keepends=True)
    assert ("00112233aabbccdd", "\n") == (json.loads(line)["id"], line[-1]), "a file of notices has one a line"
    assert "ended with 3" in outcome(NotifyTable(command=(sys.executable, "-c", script, "3"))).why
    assert "No such file" in outcome(NotifyTable(command=("/no/such/program",))).why


def test_a_sink_whose_try_hangs_is_not_tried_beside_it() -> None:
    async def main() -> list[Any]:
        heard: asyncio.Queue[Any] = asyncio.Queue()
        sinks = {"ops": NotifyTable(command=(sys.executable, "-c", "import time; time.sleep(1)"))}
        notifying = Notifying(lambda _, order: heard.put_nowait(order), sinks)
        notifying.send(WORK)
        notifying.send(SendNotice(NOTICE, 8))
        async with asyncio.timeout(PATIENCE_S):
            return [await heard.get(), await heard.get()]

    failed, sent = asyncio.run(main())
    assert (8, "the try before this one has not ended", SENT) == (failed.attempt, failed.why, sent)


@pytest.mark.proves("MET-004", part="a message into the chains, which a program beside the node reads")
def test_a_program_in_the_chains_reads_the_json_and_one_that_deletes_it_ends_it(tmp_path: Path) -> None:
    async def main() -> tuple[list[Any], list[Any]]:
        process = made(tmp_path)
        running = asyncio.ensure_future(process.run())
        heard, told = asyncio.Queue[Any](), asyncio.Queue[Any]()
        sinks = {"ops": NotifyTable(message=MessageTable(type="ops.alert"))}
        notifying = Notifying(lambda _, order: told.put_nowait(order), sinks, process.inside)
        async with asyncio.timeout(PATIENCE_S), weft.chain_client("lamp", process.inside) as chain:
            chain.reads("ops.*")(heard.put_nowait)
            await chain.ready()
            notifying.send(WORK)
            said = [await told.get(), await heard.get()]
            chain.rewrites("ops.alert", on="out")(lambda _: weft.drop("not now"))
            await chain.ready()
            notifying.send(WORK)
            ended = [await told.get()]
        process.stop()
        assert None is await running
        with pytest.raises(OSError, match="ended"):
            await send_own(process.inside, "notify.ops", MessageTable(type="ops.alert"), b"{}")
        return said, ended

    (sent, message), (failed,) = asyncio.run(main())
    assert SENT == sent
    assert ("ops.alert", "json", "raised", "00112233aabbccdd") == (
        message.type, message.fmt, message.json()["event"], message.json()["id"],
    )  # fmt: skip
    assert NoticeFailed("ops", 3, 7, "deleted", is_final=True) == failed


def test_a_root_sends_messages_through_its_own_chains(tmp_path: Path) -> None:
    async def main() -> int:
        process = made(tmp_path, {"ops": {"message": {"type": "ops.alert", "to": "nobody"}}})
        running = asyncio.ensure_future(process.run())
        alerts = process.node.cores["alerts"]
        assert isinstance(alerts, Alerts)
        async with asyncio.timeout(PATIENCE_S):
            await until(lambda: SendNotice in process.runner.performers)
            process.runner.performers[SendNotice](WORK)
            await until(lambda: alerts.counts["stale"] > 0)  # the core has not asked for it
        process.stop()
        assert None is await running
        return alerts.counts["stale"]

    assert 1 == asyncio.run(main())


@pytest.mark.parametrize(
    "table, code",
    [
        ({}, "E03 notify.ops"),
        ({"webhook": "http://a/", "command": ["x"]}, "E03 notify.ops"),
        ({"webhook": "ftp://a/"}, "E05 notify.ops.webhook"),
        ({"webhook": "http://a/", "headers": {"A": "b\r\nC: d"}}, "E04 notify.ops.headers"),
        ({"command": ["x"], "headers": {"A": "b"}}, "E04 notify.ops.headers"),
        ({"mail": {"smtp": "a", "from": "a@b", "to": ["c@d"]}}, "E05 notify.ops.mail.smtp"),
        ({"mail": {"smtp": "a:25", "from": "a@b", "to": ["c d@e"]}}, "E04 notify.ops.mail"),
        ({"mail": {"smtp": "a:25", "from": "a@b", "to": []}}, "E04 notify.ops.mail.to"),
        ({"message": {"type": "Ops"}}, "E04 notify.ops.message.type"),
        ({"message": {"type": "weft.alert"}}, "E04 notify.ops.message.type"),
        ({"message": {"type": "ops", "to": "a b"}}, "E15 notify.ops.message.to"),
        ({"command": ["x"], "severity": "loud"}, "E04 notify.ops.severity"),
    ],
)
def test_mistakes_in_a_sink_have_codes(table: dict[str, Any], code: str) -> None:
    with pytest.raises(UserError) as refused:
        settings_of({"node": {"name": "r", "level": "root"}, "notify": {"ops": table}})
    assert [True] == [code in line for line in str(refused.value).splitlines() if re.search(r" E\d\d ", line)]

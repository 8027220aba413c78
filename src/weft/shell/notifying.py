"""Sends notices of alerts to people by webhook, mail or a command, and to programs by a message (MET-004).

Webhooks, mails and commands run in threads. Each sink has one attempt at a time; the core decides when the next one starts.
An attempt may take 20 s, or 10 s without a byte from the receiver. Every message has an id, so that a receiver can
recognise a repeated one.
"""

import asyncio
import http.client
import json
import smtplib
import ssl
import subprocess
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from email.message import EmailMessage
from pathlib import Path
from typing import Any, Final

import msgspec

from weft.base.endpoints import host_of, port_of
from weft.cores.alerts.messages import Notice, NoticeFailed, NoticeSent, SendNotice
from weft.node.notifytable import MailTable, MessageTable, NotifyTable
from weft.shell.apart import Apart, Denied, post
from weft.shell.inside import Inside
from weft.shell.ownmessages import send_own
from weft.wire.alerts import sentence

CORE: Final = "alerts"
PATIENCE_S: Final = 10.0  # seconds without a byte, after which a server counts as down
COMMAND_S: Final = 20.0  # seconds that a command may take
REFUSED_FOR_GOOD: Final = frozenset({400, 413, 415, 422})
"""Status codes by which a webhook refuses this message finally; after all others it is sent again."""
ENDED_FOR_GOOD: Final = frozenset(
    {"bad-destination", "bad-type", "deleted", "denied", "filter-failed", "loop", "too-big"}
)
"""Reasons for the end of a message in the chains that would end it at the next try, too."""
FAULTS: Final = (OSError, http.client.HTTPException, smtplib.SMTPException, subprocess.SubprocessError, ValueError)


class Refused(Exception):
    """The receiver will never accept this message."""


class Notifying:
    """Performs `SendNotice`, and gives the core the outcome through `order(core, order)`, in the event loop."""

    def __init__(
        self, order: Callable[[str, Any], None], sinks: Mapping[str, NotifyTable], inside: Inside | None = None
    ) -> None:
        self._order, self._sinks, self._inside = order, sinks, inside
        self._under_way: set[asyncio.Task[None]] = set()
        self._apart = Apart(CORE, order)

    def send(self, work: SendNotice) -> None:
        """Send a notice without waiting. A sink whose last attempt has not ended gets no second one: that attempt fails."""
        if (message := self._sinks[work.notice.sink].message) is not None:
            task = asyncio.get_running_loop().create_task(self._put_in_chains(message, work))
            self._under_way.add(task)
            task.add_done_callback(self._under_way.discard)
            return
        place = (work.notice.sink, work.notice.number, work.attempt)
        self._apart.begin(work.notice.sink, lambda: self.outcome(work), lambda why: NoticeFailed(*place, why))

    async def _put_in_chains(self, message: MessageTable, work: SendNotice) -> None:
        assert self._inside is not None, "a node with sinks has chains"
        notice = work.notice
        place = (notice.sink, notice.number, work.attempt)
        outcome: NoticeSent | NoticeFailed = NoticeSent(*place)
        try:
            status = await send_own(self._inside, f"notify.{notice.sink}", message, _json(notice))
            if not status.ok:
                outcome = NoticeFailed(*place, status.why, is_final=status.why in ENDED_FOR_GOOD)
        except OSError as fault:
            outcome = NoticeFailed(*place, str(fault))
        self._order(CORE, outcome)

    def outcome(self, work: SendNotice) -> NoticeSent | NoticeFailed:
        """Send now; returns the outcome, as an order for the core."""
        notice = work.notice
        place = (notice.sink, notice.number, work.attempt)
        try:
            _send(self._sinks[notice.sink], notice)
        except Refused as refused:
            return NoticeFailed(*place, str(refused), is_final=True)
        except FAULTS as fault:
            return NoticeFailed(*place, f"{type(fault).__name__}: {fault}")
        return NoticeSent(*place)


def _send(sink: NotifyTable, notice: Notice) -> None:
    if sink.webhook:
        _post(sink, notice)
    elif sink.mail is not None:
        _mail(sink.mail, notice)
    else:
        _run(sink.command, notice)


def body_of(notice: Notice) -> dict[str, Any]:
    """The fields of a notice, as receivers get them in JSON; `id` and `event` stay the same when it is sent again."""
    fields = msgspec.structs.asdict(notice.alert)
    fields |= {"says": fields.pop("text"), "alert": fields.pop("name")}
    return {
        "id": notice.ident,
        "event": notice.what,
        "text": text_of(notice),
        "fleet": notice.fleet,
        **fields,
        "since": stamp(notice.alert.since),
        "at": stamp(notice.at),
        "why": notice.why,
    }


def _json(notice: Notice) -> bytes:
    return json.dumps(body_of(notice), ensure_ascii=False).encode("utf-8", "replace")


def text_of(notice: Notice) -> str:
    """The notice as one line for people."""
    why = f" ({notice.why})" if notice.why not in ("", "back") else ""
    return one_line(f"{notice.what}: {sentence(notice.alert)}{why}")


def one_line(text: str) -> str:
    """The text without line breaks: in a name from another node they could begin a new mail header."""
    return "".join(sign if sign.isprintable() else " " for sign in text)


def stamp(at_ms: int) -> str:
    """An instant in RFC 3339; a time beyond the calendar is written as a number."""
    try:
        return datetime.fromtimestamp(at_ms / 1_000, UTC).isoformat(timespec="milliseconds")
    except (ValueError, OverflowError, OSError):
        return f"{at_ms} ms"


def _post(sink: NotifyTable, notice: Notice) -> None:
    try:
        post(sink.webhook, _json(notice), {"content-type": "application/json", **sink.headers}, PATIENCE_S)
    except Denied as denied:
        if denied.code in REFUSED_FOR_GOOD:
            raise Refused(f"{denied.code} {denied.reason}") from None
        raise


def _mail(mail: MailTable, notice: Notice) -> None:
    host, port = host_of(mail.smtp).strip("[]"), port_of(mail.smtp)
    context = ssl.create_default_context() if mail.tls != "no" else None
    with (
        smtplib.SMTP_SSL(host, port, timeout=PATIENCE_S, context=context)
        if mail.tls == "yes"
        else smtplib.SMTP(host, port, timeout=PATIENCE_S)
    ) as server:
        if mail.tls == "starttls":
            server.starttls(context=context)
        if mail.user:
            server.login(mail.user, _password(mail.password_file))
        server.send_message(letter(mail, notice))


def _password(file: str) -> str:
    return Path(file).read_text("utf-8").partition("\n")[0] if file else ""


def letter(mail: MailTable, notice: Notice) -> EmailMessage:
    """The mail; its Message-ID stays the same when it is sent again."""
    message, alert = EmailMessage(), notice.alert
    message["Subject"] = one_line(f"[{notice.fleet}] {alert.severity} {notice.what}: {alert.node}: {alert.name}")
    message["From"], message["To"] = mail.sender, ", ".join(mail.to)
    message["Date"] = datetime.fromtimestamp(notice.made_at / 1_000, UTC)
    message["Message-ID"] = f"<{notice.ident}.{notice.what}@weft.invalid>"
    lines = [f"{key}: {one_line(str(value))}" for key, value in body_of(notice).items() if value not in ("", "back")]
    message.set_content("\n".join([text_of(notice), "", *lines, ""]).encode("utf-8", "replace").decode())
    return message


def _run(command: tuple[str, ...], notice: Notice) -> None:
    data = json.dumps(body_of(notice)).encode() + b"\n"  # so that a file of notices has one a line
    ended = subprocess.run(  # the operator of this machine wrote it into its own file
        command, input=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=COMMAND_S, check=False
    )
    if ended.returncode:
        raise OSError(f"{command[0]} ended with {ended.returncode}")

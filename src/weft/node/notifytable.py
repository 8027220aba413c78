"""`[notify.NAME]` of a root's own file: where alerts are sent, by webhook, mail, command or message (MET-004)."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from weft.base.endpoints import is_endpoint
from weft.base.settings import is_plain_name
from weft.cores.chains.order import is_type

SINKS_MAX = 16
WAYS = ("webhook", "mail", "command", "message")

Text = Annotated[str, Meta(max_length=1_000)]


class MailTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`mail = { smtp = "mail.lab:25", from = "weft@lab", to = ["ops@lab"] }`."""

    smtp: str
    """`host:port`."""
    sender: Text = msgspec.field(name="from")
    to: Annotated[tuple[Text, ...], Meta(min_length=1, max_length=100)]
    tls: Literal["no", "starttls", "yes"] = "no"
    user: Text = ""
    password_file: str = ""
    """A file whose first line is the password."""


class MessageTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`message = { type = "ops.alert", to = "children" }`."""

    type: str
    """The type for which programs register in the chains."""
    to: str = "local"
    """`local`: this node; `children`: each of its children; else a node's name."""


class NotifyTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One sink: exactly one of `webhook`, `mail`, `command`, `message`."""

    webhook: Text = ""
    """`http(s)://…`, to which JSON is posted."""
    headers: dict[str, str] = {}
    """HTTP headers of that request, such as Authorization."""
    mail: MailTable | None = None
    command: tuple[str, ...] = ()
    """A program and its arguments; it gets the JSON on standard input."""
    message: MessageTable | None = None
    """A message of the chains, with the JSON as its payload, for programs beside nodes."""
    severity: Literal["warning", "critical"] = "warning"
    """Alerts of this severity and above are sent."""


def faults_of(sinks: Mapping[str, NotifyTable]) -> Iterator[str]:
    """What is wrong with the sinks, each with its code."""
    if len(sinks) > SINKS_MAX:
        yield f"E04 notify: {len(sinks)} sinks, {SINKS_MAX} at most"
    for name, sink in sinks.items():
        where = f"notify.{name}"
        rules = (
            (is_plain_name(name), f"E15 {where}: letters, digits, `_`, `.`, `-` only, 63 at most"),
            (
                [bool(getattr(sink, way)) for way in WAYS].count(True) == 1,
                f"E03 {where}: exactly one of {', '.join(WAYS)}",
            ),
            (
                not sink.webhook or is_web_address(sink.webhook),
                f"E05 {where}.webhook {sink.webhook!r}: http(s)://host/path",
            ),
            (not sink.headers or bool(sink.webhook), f"E04 {where}.headers: belong to a webhook"),
            (are_headers(sink.headers), f"E04 {where}.headers: names and values of one line"),
            (
                sink.message is None or _is_own_type(sink.message.type),
                f"E04 {where}.message.type: 1 to 64 of a-z 0-9 . _ -; types that begin with weft. are Weft's own",
            ),
            (
                sink.message is None or is_plain_name(sink.message.to),
                f"E15 {where}.message.to: local, children, or the name of a node",
            ),
            (
                sink.mail is None or is_endpoint(sink.mail.smtp),
                f"E05 {where}.mail.smtp: host:port of a mail server",
            ),
            (
                sink.mail is None or all(map(_is_mailbox, (sink.mail.sender, *sink.mail.to))),
                f"E04 {where}.mail: addresses like ops@lab.example",
            ),
        )
        yield from [text for holds, text in rules if not holds]


def is_web_address(text: str) -> bool:
    """Whether it is `http(s)://host…`."""
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0 and text.isprintable()
    except ValueError:
        return False


def are_headers(headers: Mapping[str, str]) -> bool:
    """Whether they are valid HTTP headers."""
    return all(
        name and name.isascii() and name.isprintable() and value.isprintable() for name, value in headers.items()
    )


def _is_own_type(text: str) -> bool:
    """Whether this is a valid type of message that Weft does not use itself."""
    return is_type(text) and not text.startswith("weft.")


def _is_mailbox(text: str) -> bool:
    return "@" in text and text.isprintable() and not any(sign in text for sign in " ,;<>")

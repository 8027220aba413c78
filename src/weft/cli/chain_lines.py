"""Formats chains for people and programs: a message as one line, and all chains of a node as tables."""

import asyncio
import json as to_json
import sys
import time
from collections.abc import Iterable, Sequence
from typing import Any, Final

from weft.base.now import MILLISECOND, SECOND
from weft.cli.kit.lines import aligned, clock
from weft.cli.kit.text import clean, clean_bytes
from weft.cli.octets import payload_json
from weft.client.chain.message import Message
from weft.wire.clients import Welcome

ID_DIGITS: Final = 8
"""Shown characters of a node's id: enough to distinguish nodes."""
COLUMNS: Final = ("place", "who", "kind", "access", "state", "in hand")
COUNTERS: Final = (
    "offered",
    "passed",
    "changed",
    "dropped",
    "failed",
    "timed_out",
    "late",
    "released",
    "lost",
    "pending",
    "backlog",
)
"""Counters of a link, in the order of the table (CHN-082)."""
ALWAYS: Final = ("offered", "passed")
"""Columns that are shown even if they are all zero."""


def who(message: Message, here: Welcome) -> str:
    """The node that first sent a message: the name of this node, or the beginning of another one's id."""
    origin = message.origin
    if origin == here.node:
        return here.name
    return origin.hex()[:ID_DIGITS] if isinstance(origin, bytes) else str(origin)


class Lines:
    """Prints messages as they come, for people or for programs; everything else goes to standard error."""

    def __init__(self, json: bool) -> None:
        self._json = json
        self._is_broken = asyncio.Event()

    async def broken(self) -> None:
        """Wait until the output is closed; then raise BrokenPipeError."""
        await self._is_broken.wait()
        raise BrokenPipeError

    def begin(self, words: str, **facts: Any) -> None:
        """The command is attached."""
        if self._json:
            self._event("ready", facts)
        else:
            print(words, file=sys.stderr, flush=True)

    def message(self, message: Message, origin: str, word: str, payload: bytes) -> None:
        """Print a message; `word` says what became of it, if that is of interest."""
        if message.lost:
            self.lost(message.lost)
        if self._json:
            mid = [message.origin.hex(), *message.mid[1:]] if isinstance(message.origin, bytes) else list(message.mid)
            facts = {"at": message.at, "on": message.direction, "type": message.type, "origin": origin, "mid": mid}
            self._event(
                "message", {**facts, "own": message.own, "verdict": word or "passed", "payload": payload_json(payload)}
            )
        else:
            self._print(
                f"{clock(message.at)} {message.direction:3} {origin} {word + ' ' if word else ''}{clean_bytes(payload)}"
            )

    def lost(self, count: int) -> None:
        """Copies before this message were discarded, because this command did not read them in time."""
        if self._json:
            self._event("lost", {"count": count})
        else:
            print(f"{count} before this one were not read in time", file=sys.stderr, flush=True)

    def sent(self, at: int, why: str, payload: bytes, *, ok: bool) -> None:
        """Print what became of a message that was sent."""
        if self._json:
            self._event("sent", {"at": at, "ok": ok, "why": why, "payload": payload_json(payload)})
        else:
            self._print(f"{clock(at)} {why} {clean_bytes(payload)}")

    def end(self, counts: dict[str, int], trouble: dict[str, int]) -> None:
        """The counts at the end."""
        if self._json:
            self._event("end", {"counts": counts, "trouble": trouble})
            return
        parts = [f"{count:,} {what}" for what, count in [*counts.items(), *trouble.items()]]
        print(", ".join(parts) or "nothing happened", file=sys.stderr, flush=True)

    def _event(self, name: str, facts: dict[str, Any]) -> None:
        self._print(to_json.dumps({"event": name, **facts}, separators=(",", ":")))

    def _print(self, line: str) -> None:
        if self._is_broken.is_set():
            return
        try:
            print(line, flush=True)
        except BrokenPipeError:
            self._is_broken.set()


# All chains of a node


def count(link: dict[str, Any], name: str) -> int:
    """A counter of a link, wherever it is stored."""
    return int(link["counters"].get(name, link.get(name, 0)))


def headings(links: Iterable[dict[str, Any]]) -> list[str]:
    """The counters that get a column."""
    links = list(links)
    return [name for name in COUNTERS if name in ALWAYS or any(count(link, name) for link in links)]


def rows(chain: dict[str, Any], counters: Sequence[str]) -> list[tuple[str, ...]]:
    """The links of a chain, from top to bottom."""
    return [
        (
            str(link["place"]),
            clean(str(link["name"])),
            str(link["kind"]),
            str(link.get("access", "-")),
            str(link.get("state", "-")).lower(),
            answer_time(link),
            *(f"{count(link, name):,}" for name in counters),
        )
        for link in chain["links"]
    ]


def answer_time(link: dict[str, Any]) -> str:
    """How long the link had a message in hand, on average.

    >>> answer_time({"counters": {"offered": 4, "waited_ns": 10_000_000}, "pending": 0})
    '2.5 ms'
    """
    answered = count(link, "offered") - count(link, "pending")
    waited = count(link, "waited_ns")
    return f"{waited / answered / MILLISECOND:.1f} ms" if waited and answered > 0 else "-"


def heading(chain: dict[str, Any]) -> str:
    """A chain and what became of its messages.

    >>> heading({"direction": "out", "type": "t", "accepted": 3, "delivered": 1, "ended": {"deleted": 2}, "in_flight": 0})
    'out t: 3 accepted, 1 delivered, 2 deleted'
    """
    parts = [f"{chain['accepted']:,} accepted", f"{chain['delivered']:,} delivered"]
    parts += [f"{number:,} {why}" for why, number in chain["ended"].items()]
    if chain["in_flight"]:
        parts.append(f"{chain['in_flight']:,} on their way")
    return f"{chain['direction']} {chain['type']}: {', '.join(parts)}"


def wanted(answer: dict[str, Any], type_name: str | None) -> list[dict[str, Any]]:
    """The chains of a type, or all: outgoing ones first, each direction sorted by type."""
    chosen = [chain for chain in answer["chains"] if type_name in (None, chain["type"])]
    return sorted(chosen, key=lambda chain: (chain["direction"] != "out", chain["type"]))


def client_line(client: dict[str, Any]) -> str:
    """An attached client, and what went wrong with it.

    >>> client_line({"name": "tagger", "pid": 7, "errors": {"denied": 2}, "copies_lost": 0})
    'tagger, process 7, 2 denied'
    """
    parts = [clean(str(client["name"]))]
    if client.get("pid"):
        parts.append(f"process {client['pid']}")
    parts += [f"{number:,} {why}" for why, number in (client.get("errors") or {}).items()]
    if client.get("copies_lost"):
        parts.append(f"{client['copies_lost']:,} copies lost")
    return ", ".join(parts)


def reader_line(reader: dict[str, Any]) -> str:
    """A remembered reader, and what waits for it.

    >>> reader = {"name": "tally", "type": "app.*", "is_away": True, "forgotten_in_s": 540, "waiting": 1200}
    >>> reader_line(reader | {"waiting_bytes": 2_500_000})
    'tally of app.*: away, 1,200 messages (2.5 MB) wait, forgotten in 540 s'
    """
    parts = ["away" if reader["is_away"] else "attached"]
    if reader["waiting"]:
        parts.append(f"{reader['waiting']:,} messages ({reader['waiting_bytes'] / 1e6:.1f} MB) wait")
    if reader["is_away"]:
        parts.append(f"forgotten in {reader['forgotten_in_s']:,} s")
    return f"{clean(str(reader['name']))} of {clean(str(reader['type']))}: {', '.join(parts)}"


def show(answer: dict[str, Any], chains: Sequence[dict[str, Any]]) -> None:
    """Print the chains of a node for people."""
    from rich.text import Text  # only people need it

    from weft.cli.kit.console import console  # loads rich

    out = console()
    if not chains:
        out.print(Text(f"no message has passed {answer['name']}, and its chains have no links"))
    counters = headings(link for chain in chains for link in chain["links"])
    heads = (*COLUMNS, *(name.replace("_", " ") for name in counters))
    for chain in chains:
        out.print(Text(heading(chain), style="bold"))
        if chain["links"]:
            for line in aligned([heads, *rows(chain, counters)]):
                out.print(Text(f"  {line}"))
    for reader in answer.get("readers", ()):
        out.print(Text(f"reader {reader_line(reader)}", style="dim"))
    for client in answer.get("clients", ()):
        out.print(Text(f"client {client_line(client)}", style="dim"))


# Traced messages, and the spool


def traced(answer: dict[str, Any]) -> None:
    """Each message with its links, a line each."""
    if not answer["messages"]:
        print("no message came", file=sys.stderr)
    for message in answer["messages"]:
        origin, _, number = message["mid"]
        print(f"{message['direction']} {message['type']} {origin[:ID_DIGITS]}:{number}, {message['bytes']:,} bytes")
        for step in message["steps"]:
            print(f"  {step['us']:>9,} µs  {clean(step['link'])}: {step['verdict']}")
        print(f"  {message['us']:>9,} µs  {message['end']}")


SPOOL: Final = {
    "records": "spool_records",
    "bytes": "spool_bytes",
    "resent": "resent",
    "given_up": "dropped",
    "duplicates": "known",
    "unsure": "unsure",
}
"""Texts for the outbox, by the counters of the carrier (CHN-082)."""


def spooled(status: dict[str, Any]) -> dict[str, Any]:
    """What waits at a node, from its status; empty if the node runs no carrier."""
    cores = status.get("cores", {})
    carrier, chains = cores.get("carrier", {}), cores.get("chains", {})
    mail = chains.get("mail", {})
    at = carrier.get("oldest_at", 0)
    counts: dict[str, Any] = {name: carrier.get(counter, 0) for name, counter in SPOOL.items()}
    counts["oldest_s"] = round(max(0, time.time_ns() - at) / SECOND, 3) if at else None
    counts["inbox"] = {"entries": mail.get("inbox_entries", 0), "bytes": mail.get("inbox_bytes", 0)}
    return counts


def show_spool(counts: dict[str, Any]) -> None:
    """For people."""
    oldest = "" if counts["oldest_s"] is None else f", the oldest {counts['oldest_s']:,.1f} s old"
    print(f"up: {counts['records']:,} records wait, {counts['bytes']:,} bytes{oldest}")
    print(f"    {counts['resent']:,} were sent again, {counts['given_up']:,} given up for want of room")
    print(f"in: {counts['inbox']['entries']:,} messages have not ended, {counts['inbox']['bytes']:,} bytes")
    print(f"    {counts['duplicates']:,} came twice, {counts['unsure']:,} may have")

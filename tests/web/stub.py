"""A node that has one document, no peers but those it is told of, and no log: it speaks what boards ask (JAM-040)."""

import asyncio
import time
from pathlib import Path
from typing import Any, Self
from xml.etree import ElementTree as ET

import zmq
import zmq.asyncio

from tests.document.derby.bouts import tree
from weft.cores.document.derby import board
from weft.wire.document import programs
from weft.wire.document.clients import Answer, Asked

SOURCE = "a0000000-0000-4000-8000-000000000001"
GENESIS = """<bout ruleset="MAR2014"><team id="home"/><team id="away"/><team id="official"/>
<period number="1"/><period number="2"/></bout>"""


class Refused(Exception):
    """Answered with a code."""


class Stub:
    """To be used in a running loop, between `start` and `close`."""

    def __init__(self, path: Path, document: str = GENESIS) -> None:
        self.endpoint = f"ipc://{path}"
        self.root = ET.fromstring(document)
        self.time: float | None = None
        """Session time; None: the wall clock."""
        self.facts: dict[str, Any] = {"alone_s": 0}
        self.peers: list[dict[str, Any]] = []
        self.conflicts: list[dict[str, Any]] = []
        self.parked: list[dict[str, Any]] = []
        self.chats: list[dict[str, Any]] = []
        self.operations: list[dict[str, Any]] = []
        self.edits: list[dict[str, Any]] = []
        """What was asked of it, as it came."""
        self.is_deaf = False
        self._watchers: list[tuple[bytes, bytes]] = []
        self._number = 0
        self._context = zmq.asyncio.Context()
        self._router = self._context.socket(zmq.ROUTER)
        self._router.linger = 0
        self._said: asyncio.Queue[tuple[bytes, Answer]] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        self._router.bind(self.endpoint)
        self._tasks = [asyncio.ensure_future(self._serve()), asyncio.ensure_future(self._tell_all())]

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._router.close()
        self._context.term()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _serve(self) -> None:
        while True:
            peer, *frames = await self._router.recv_multipart()
            if self.is_deaf:
                continue
            asked = programs.decode(frames)
            try:
                body, more = self._answer(peer, asked)
            except Refused as error:
                code, _, text = str(error).partition(": ")
                await self._say(peer, Answer(asked.id, {"text": text, "mend": ""}, code))
            else:
                if body is not None:
                    await self._say(peer, Answer(asked.id, body, more=more))

    async def _tell_all(self) -> None:
        while True:
            await self._say(*await self._said.get())

    async def _say(self, peer: bytes, answer: Answer) -> None:
        await self._router.send_multipart([peer, *programs.encode(answer)])

    def _answer(self, peer: bytes, asked: Asked) -> tuple[Any, bool]:
        if asked.verb == "watch":
            self._watchers.append((peer, asked.id))
            return {"n": 0}, True
        if asked.verb in ("heard", "end"):
            return None, False
        return getattr(self, f"_{asked.verb}")(asked.args), False

    @property
    def check(self) -> str:
        return f"{len(self.operations):08x}"

    @property
    def now(self) -> float:
        return time.time() if self.time is None else self.time

    def _sessions(self, args: dict[str, Any]) -> Any:
        return [{"session": "Hall 5", "schema": "derby"}]

    def _status(self, args: dict[str, Any]) -> Any:
        facts = {"session": "Hall 5", "schema": "derby", "uuid": SOURCE, "endpoint": "127.0.0.1:50001", "operator": ""}
        return (
            facts
            | {"check": f"{len(self.operations):08x}", "time": self.now, "operations": len(self.operations)}
            | self.facts
        )

    def _peers(self, args: dict[str, Any]) -> Any:
        return {"peers": self.peers}

    def _sources(self, args: dict[str, Any]) -> Any:
        return {"sources": [{"source": SOURCE, "by": row["by"]} for row in self.operations[-1:]]}

    def _conflicts(self, args: dict[str, Any]) -> Any:
        return {"conflicts": self.conflicts}

    def _parked(self, args: dict[str, Any]) -> Any:
        return {"parked": self.parked}

    def _board(self, args: dict[str, Any]) -> Any:
        return {"board": board.state(tree(ET.tostring(self.root)), self.now), "digest": "", "check": self.check}

    def _log(self, args: dict[str, Any]) -> Any:
        total = len(self.operations)
        rows = self.operations[max(0, total - args["tail"]) if "tail" in args else args.get("from", 0) :]
        return {"operations": rows, "next": total, "total": total}

    def _chat(self, args: dict[str, Any]) -> Any:
        if args.get("text") is None:
            return {"chats": self.chats}
        chat = {"event": "chat", "at": self.now, "peer": SOURCE, "text": args["text"]}
        self.chats.append(chat)
        self._tell(events=[chat])
        return {"told": len(self.peers)}

    def _resolve(self, args: dict[str, Any]) -> Any:
        if not any(conflict["id"] == args["id"] for conflict in self.conflicts):
            raise Refused("not-found: there is no such conflict")
        self.edits.append(args)
        self.conflicts = [conflict for conflict in self.conflicts if conflict["id"] != args["id"]]
        return self._issue("set", args, "<set/>")

    def _edit(self, args: dict[str, Any]) -> Any:
        self.edits.append(args)
        target = self._target(args["reference"])
        if target is None:
            raise Refused("no-reference: that refers to nothing")
        if args["verb"] == "set":
            target.attrib.update(args["attributes"])
        elif args["verb"] == "add":
            try:
                target.append(ET.fromstring(args["xml"]))
            except ET.ParseError as error:
                raise Refused(f"bad-xml: {error}") from None
        else:
            self._parent(target).remove(target)
        return self._issue(
            args["verb"], args, f'<{args["verb"]} source="{SOURCE}">{args.get("xml", "")}</{args["verb"]}>'
        )

    def _parent(self, target: ET.Element) -> ET.Element:
        return next(parent for parent in self.root.iter() if target in parent)

    def _target(self, reference: dict[str, str]) -> ET.Element | None:
        if "eid" in reference:
            return self.root.find(f".//*[@eid='{reference['eid']}']")
        if "team" in reference:
            return self.root.find(f"team[@id='{reference['team']}']")
        period = self.root.find(f"period[@number='{reference.get('period')}']")
        if period is None or "jam" not in reference:
            return period
        jam = period.find(f"jam[@number='{reference['jam']}']")
        return ET.SubElement(period, "jam", {"number": reference["jam"]}) if jam is None else jam

    def _issue(self, verb: str, args: dict[str, Any], body: str) -> Any:
        number = len(self.operations) + 1
        row = {
            "source": SOURCE,
            "sequence": number,
            "eff": self.now,
            "verb": verb,
            "reference": " ".join(f"{name}={value}" for name, value in args.get("reference", {}).items()),
            "by": args.get("by", ""),
            "outcome": "applied",
            "received_at": int(self.now * 1e9),
            "received_from": SOURCE,
            "body": body.encode(),
        }
        self.operations.append(row)
        self._tell(operations=[row])
        return {"source": SOURCE, "sequence": number, "outcome": "applied", "hidden_by": "", "eids": []}

    def touch(self) -> None:
        """Say that something has changed."""
        self._tell()

    def _tell(self, **facts: Any) -> None:
        self._number += 1
        body = {"n": self._number, "check": self.check, **facts}
        for peer, number in self._watchers:
            self._said.put_nowait((peer, Answer(number, body, more=True)))

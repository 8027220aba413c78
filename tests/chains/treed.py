"""The steps of a scenario over whole nodes: clients speak frames to chains and carrier of each (CLI-023)."""

from typing import Any

from weft.base.effects import Source
from weft.cores.chains.messages import LinkSickened
from weft.sim.tree import Tree
from weft.wire import clients

BEAT_MS = 500


class Speaker:
    """A client that notes what it hears, and may answer by itself."""

    def __init__(self, player: "Player", node: str, name: str, number: int) -> None:
        self.player, self.node, self.name = player, node, name
        self.peer = b"%05d" % number
        self.autos: dict[int, str] = {}
        self.seen: dict[int, int] = {}
        player.tree.attach(node, self.peer, self)
        self.say(clients.Hello(v=1, role="client", name=name, id=number.to_bytes(16, "big")))

    def say(self, message: clients.Asked) -> None:
        self.player.tree.say(self.node, self.peer, message)

    def hear(self, message: clients.Answered) -> None:
        note = self.player.events.append
        if isinstance(message, clients.Status):
            for status in message.m:
                note(("status", self.node, self.name, status.tag, status.ok, status.why))
        elif isinstance(message, clients.Error):
            note(("error", self.node, self.name, message.about, message.id, message.why))
        elif isinstance(message, clients.Rec):
            for item, frames in clients.each_with_frames(message.m, message.frames):
                note(("rec", self.node, self.name, message.reg, item.id, b"".join(frames).decode()))
                if message.reg in self.autos:
                    self.player.tree.post(
                        self.node, self.player.source(self), self._answer(message.reg, item.id, frames)
                    )

    def _answer(self, reg: int, number: int, frames: tuple[bytes, ...]) -> list[bytes]:
        self.seen[reg] = self.seen.get(reg, 0) + 1
        if self.autos[reg] == "every-other" and self.seen[reg] % 2 == 0:
            return clients.encode(clients.Drop(reg, [clients.GiveUp(id=number)]))
        if self.autos[reg] == "pass":
            return clients.encode(clients.Next(reg, [clients.NextItem(id=number)], []))
        payload = frames[0] + b"+" + self.name.encode()
        return clients.encode(clients.Next(reg, [clients.NextItem(id=number, n=1)], [payload]))


class Player:
    """Plays the steps."""

    tree: Tree

    def __init__(self) -> None:
        self.speakers: dict[tuple[str, str], Speaker] = {}
        self.events: list[tuple[Any, ...]] = []
        self.told: dict[str, int] = {}
        self.spoken = 0

    def play(self, steps: list[list[Any]]) -> list[tuple[Any, ...]]:
        """What all clients have heard, and who is sick."""
        for name, *said in steps:
            getattr(self, f"do_{name}")(*said)
            self._look_for_sick()
        return self.events

    def source(self, speaker: Speaker) -> Source:
        return Source("clients", speaker.peer)

    def _look_for_sick(self) -> None:
        for name, place in self.tree.places.items():
            for event in place.events[self.told.get(name, 0) :]:
                if isinstance(event, LinkSickened):
                    self.events.append(("sick", name, event.client, event.reg))
            self.told[name] = len(place.events)

    def _at(self, node: str, name: str) -> Speaker:
        if (node, name) not in self.speakers:
            self.spoken += 1
            self.speakers[node, name] = Speaker(self, node, name, self.spoken)
        return self.speakers[node, name]

    def do_tree(self, parents: dict[str, str | None]) -> None:
        self.tree = Tree({name: parent or "" for name, parent in parents.items()})

    def do_reg(self, node: str, name: str, reg: int, options: dict[str, Any]) -> None:
        self._at(node, name).say(clients.Reg(reg=reg, **{"dir": "in", "type": "t", **options}))

    def do_unreg(self, node: str, name: str, reg: int) -> None:
        self._at(node, name).say(clients.Unreg(reg))

    def do_die(self, node: str, name: str) -> None:
        self.speakers.pop((node, name)).say(clients.Bye())

    def do_send(self, node: str, name: str, tag: int, payload: str, to: Any = None, *more: Any) -> None:
        cause, kind = (*more, None, None)[:2]
        item = clients.SendItem(tag=tag, type=kind or "t", to=to or ["PARENTSOF"], cause=cause)
        self._at(node, name).say(clients.Send([item], [payload.encode()]))

    def do_next(self, node: str, name: str, reg: int, number: int, *more: Any) -> None:
        payload, to = (*more, None, None)[:2]
        frames = [] if payload is None else [payload.encode()]
        self._at(node, name).say(clients.Next(reg, [clients.NextItem(id=number, to=to, n=len(frames))], frames))

    def do_drop(self, node: str, name: str, reg: int, number: int) -> None:
        self._at(node, name).say(clients.Drop(reg, [clients.GiveUp(id=number)]))

    def do_fail(self, node: str, name: str, reg: int, number: int) -> None:
        self._at(node, name).say(clients.Fail(reg, [clients.GiveUp(id=number)]))

    def do_auto(self, node: str, name: str, reg: int, how: str) -> None:
        self._at(node, name).autos[reg] = how

    def do_advance(self, span_ms: int) -> None:
        while span_ms > 0:
            for speaker in self.speakers.values():
                speaker.say(clients.Beat())
            self.tree.advance(min(span_ms, BEAT_MS))
            span_ms -= BEAT_MS

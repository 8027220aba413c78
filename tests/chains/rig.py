"""Three chains cores and recording sessions: mail moves from one's outbox to the next one's inbox, at once.

Nothing of the carrier and of the client protocol is in here: the engine alone. Time stands still until it is told to pass.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from weft.base.effects import Persist, Tell
from weft.base.mail import INBOX, OUTBOX, Mail, of_record, to_record
from weft.base.now import MILLISECOND, SECOND, Now
from weft.base.records import Record, StreamRecord
from weft.cores.chains.clientlink import ClientLink, HeldMessage, HolderLink
from weft.cores.chains.core import Chains
from weft.cores.chains.messages import ChainsSettings, LinkSickened, MailPosted, Placed, PostReached
from weft.cores.chains.parcel import IN, Parcel
from weft.wire import clients

WALL = 1_795_000_000 * SECOND
ERA = 0x019AAAAC267B00A1


class Recorder:
    """A session that notes everything, and may answer by itself."""

    def __init__(self, rig: "Rig", node: str, name: str) -> None:
        self.rig, self.node, self.name = rig, node, name
        self.id = f"{node}/{name}".encode().ljust(16, b".")
        self.links: dict[int, ClientLink] = {}
        self.is_gone = False
        self.autos: dict[int, str] = {}
        self.seen: dict[int, int] = {}
        self.offers: list[tuple[int, int, bool]] = []
        """Registration, id, `re`."""
        self.said: list[Any] = []

    def offer(self, reg: int, parcel: Parcel, *, re: bool = False) -> None:
        assert not self.is_gone, "offered to the dead"
        self.offers.append((reg, parcel.id, re))
        self._note(reg, parcel)
        if reg in self.autos:
            self.rig.later.append(lambda: self._auto(reg, parcel))

    def copy(self, reg: int, parcel: Parcel) -> None:
        assert not self.is_gone, "shown to the dead"
        self._note(reg, parcel)

    def _note(self, reg: int, parcel: Parcel) -> None:
        self.rig.events.append(("rec", self.node, self.name, reg, parcel.id, b"|".join(parcel.frames).decode()))

    def _auto(self, reg: int, parcel: Parcel) -> None:
        self.seen[reg] = self.seen.get(reg, 0) + 1
        how = self.autos[reg]
        if how == "every-other" and self.seen[reg] % 2 == 0:
            self.rig.drop(self.node, self.name, reg, parcel.id)
        elif how == "pass":
            self.rig.next(self.node, self.name, reg, parcel.id)
        else:
            self.rig.next(self.node, self.name, reg, parcel.id, f"{parcel.frames[0].decode()}+{self.name}")

    def answer(self, tag: int, ok: bool, why: str, count: int | None = None, failed: int = 0) -> None:
        assert not self.is_gone, "a status to the dead"
        self.rig.events.append(("status", self.node, self.name, tag, ok, why))

    def say(self, message: clients.Answered) -> None:
        self.said.append(message)
        if isinstance(message, clients.Error):
            self.rig.events.append(("error", self.node, self.name, message.about, message.id, message.why))


class Site:
    """One node of the rig."""

    def __init__(self, rig: "Rig", name: str, era: int = ERA, **settings: Any) -> None:
        self.rig, self.name = rig, name
        self.id = name.encode().ljust(16, b"-")
        self.core = Chains((), ChainsSettings(name=name, **settings), self.id, era)
        self.sessions: dict[str, Recorder] = {}
        self.journal: list[Record] = []
        self.told: list[Any] = []
        holding: Any = self.core.walker.holding
        self._lose, self._ignore = holding.lose, holding.ignore
        holding.lose, holding.ignore = self.lose, self.ignore

    def lose(self, link: HolderLink | None, held: HeldMessage, why: str, now: Now) -> None:
        if held.parcel.direction == IN and link is not None:
            self.rig.events.append(("lost", self.name, link.name, held.parcel.id, why))
        self._lose(link, held, why, now)

    def ignore(self, link: HolderLink, parcel: Parcel) -> None:
        self.rig.events.append(("ignored", self.name, link.name, "to", parcel.id))
        self._ignore(link, parcel)

    def session(self, name: str) -> Recorder:
        if name not in self.sessions:
            self.sessions[name] = Recorder(self.rig, self.name, name)
        return self.sessions[name]


class Rig:
    """Sites in a tree; every step is carried through to the end."""

    def __init__(self, tree: dict[str, str | None] | None = None, **settings: Any) -> None:
        self.sites: dict[str, Site] = {}
        self.parents: dict[str, str | None] = {}
        self.events: list[tuple[Any, ...]] = []
        self.later: deque[Callable[[], None]] = deque()
        self.mono = 1_000 * SECOND
        self._settings = settings
        self.checks: list[Callable[[], None]] = []
        if tree is not None:
            self.tree(tree)

    @property
    def now(self) -> Now:
        return Now(self.mono, WALL + self.mono)

    # Steps of a scenario

    def tree(self, parents: dict[str, str | None]) -> None:
        self.parents = parents
        for name in parents:
            self.sites[name] = Site(self, name, **self._settings)
        for name, parent in parents.items():
            children = tuple([(self.sites[c].id, c) for c, p in parents.items() if p == name])
            level = "root" if parent is None else "collector" if children else "sensor"
            self.sites[name].core.command(Placed(level, parent or "", children), self.now)
        self.settle()

    def reg(self, node: str, client: str, reg: int, options: dict[str, Any]) -> Recorder:
        said = {"dir": "in", "type": "t", **options}
        session = self.sites[node].session(client)
        self.sites[node].core.engine.stand(session, clients.Reg(reg=reg, **said), self.now)
        self.settle()
        return session

    def unreg(self, node: str, client: str, reg: int) -> None:
        self.sites[node].core.engine.leave(self.sites[node].session(client), reg, self.now)
        self.settle()

    def die(self, node: str, client: str) -> None:
        session = self.sites[node].sessions.pop(client)
        session.is_gone = True
        self.sites[node].core.engine.lose(session, self.now)
        self.settle()

    def send(self, node: str, client: str, tag: int, payload: str, to: Any = None, *said: Any, **more: Any) -> None:
        """`said`: cause and type, as the vectors have them."""
        cause, kind = (*said, None, None)[:2] if said else (None, None)
        item = clients.SendItem(tag=tag, type=kind or "t", to=to or ["PARENTSOF"], cause=cause, **more)
        self.sites[node].core.engine.accept(self.sites[node].session(client), item, (payload.encode(),), self.now)
        self.settle()

    def next(self, node: str, client: str, reg: int, number: int, *said: Any) -> None:
        """`said`: payload and destination, as the vectors have them."""
        payload, to = (*said, None, None)[:2]
        frames = () if payload is None else (payload.encode(),)
        item = clients.NextItem(id=number, to=to, n=len(frames))
        self.sites[node].core.engine.hand_back(self.sites[node].session(client), reg, item, frames, self.now)
        self.settle()

    def drop(self, node: str, client: str, reg: int, number: int) -> None:
        self.sites[node].core.engine.delete(self.sites[node].session(client), reg, clients.GiveUp(id=number), self.now)
        self.settle()

    def fail(self, node: str, client: str, reg: int, number: int) -> None:
        self.sites[node].core.engine.fail(self.sites[node].session(client), reg, clients.GiveUp(id=number), self.now)
        self.settle()

    def conf(self, node: str, client: str, reg: int, number: int) -> None:
        self.sites[node].core.engine.confirm(self.sites[node].session(client), reg, number, self.now)
        self.settle()

    def auto(self, node: str, client: str, reg: int, how: str) -> None:
        self.sites[node].session(client).autos[reg] = how

    def advance(self, ms: int) -> None:
        end = self.mono + ms * MILLISECOND
        while True:
            dues = [at for site in self.sites.values() if (at := site.core.deadline()) is not None and at <= end]
            if not dues:
                break
            self.mono = max(self.mono, min(dues))
            for site in self.sites.values():
                site.core.wake(self.now)
            self.settle()
        self.mono = end

    # The world

    def settle(self) -> None:
        """Deliver until nothing moves."""
        while True:
            moved = [self._take(site) for site in self.sites.values()]
            if self.later:
                self.later.popleft()()
            elif not any(moved):
                break
        for check in self.checks:
            check()

    def _take(self, site: Site) -> bool:
        effects = site.core.effects()
        for effect in effects:
            if isinstance(effect, Persist):
                for record in effect.records:
                    self._keep(site, record)
            elif isinstance(effect, Tell):
                self._hear(site, effect.event)
        return bool(effects)

    def _keep(self, site: Site, record: Record) -> None:
        site.journal.append(record)
        parent = self.parents[site.name]
        if isinstance(record, StreamRecord) and record.stream == OUTBOX and parent is not None:
            self.bring(parent, site, of_record(record))

    def bring(self, name: str, sender: Site, mail: Mail, *, is_durable: bool = True) -> None:
        """Mail arrives at a node."""
        arrived = Mail(
            **{field: getattr(mail, field) for field in mail.__struct_fields__} | {"via": (*mail.via, sender.id)}
        )
        record = to_record(arrived, INBOX, self.now.wall)
        if not is_durable:
            record.attributes["mem"] = True
        site = self.sites[name]
        for kept in site.core.screen(record, self.now):
            self._keep(site, kept)

    def _hear(self, site: Site, event: Any) -> None:
        site.told.append(event)
        if isinstance(event, LinkSickened):
            self.events.append(("sick", site.name, event.client, event.reg))
        elif isinstance(event, MailPosted):
            names = {other.id: name for name, other in self.sites.items()}
            nodes = [names[node] for node in event.nodes] or [self._far(event.mail) or self.parents[site.name] or ""]
            for name in nodes:
                self.bring(name, site, event.mail, is_durable=False)
            site.core.command(PostReached(event.ticket, len(nodes)), self.now)

    def _far(self, mail: Mail) -> str | None:
        """The node that mail is for, several links away: the carrier finds it."""
        node = mail.to[1] if len(mail.to) > 1 else None
        return next((name for name, site in self.sites.items() if node in (name, site.id)), None)

    def play(self, steps: list[list[Any]]) -> list[tuple[Any, ...]]:
        """The steps of a scenario, and what everybody saw."""
        for name, *said in steps:
            getattr(self, name)(*said)
        return self.events


def by_client(events: Any) -> dict[tuple[str, str], list[list[Any]]]:
    """What each client saw, in order."""
    seen: dict[tuple[str, str], list[list[Any]]] = {}
    for event in events:
        seen.setdefault((event[1], event[2]), []).append(list(event))
    return seen

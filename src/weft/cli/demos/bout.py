"""`weft demo bout`: two laptops keep score of one bout while the cable between them is out (JAM-041).

Each laptop is a node with a log, a document and a board of its own; the cable is a relay between them. Ann times the jams
and counts for the home team, Bob counts for the other team and notes penalties. Then the cable is cut, and both go on: both
refer to the same jams, and they disagree about one. After the cable is joined, both must have every entry, the same
document, and the one conflict on their boards; the demonstration says PASS, or what differs.
"""

import json
import select
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.request import urlopen

from rich.console import Console

from weft.base.errors import UserError
from weft.cli.demos.cable import Cable
from weft.cli.demos.real import until
from weft.cli.fleet import Fleet, Member
from weft.cli.kit.console import console as quiet
from weft.cli.kit.exits import DONE, NOT_SO
from weft.client.doc.errors import DocError
from weft.client.doc.sync import SyncClient
from weft.client.doc.values import Written
from weft.shell.blocks import free_blocks

SESSION: Final = "demo bout"
NAMES: Final = ("ann", "bob")
THIRD: Final = "cleo"
BLOCKS_FROM: Final = 29_000
READY_S: Final = 60.0
STEP_S: Final = 0.05
JAM_S: Final = 2.0
LINEUP_S: Final = 1.5
AFTER_S: Final = 3.0  # how long play goes on after the cable is joined
EQUAL_S: Final = 3.0  # JAM-041
BOARD_S: Final = 3.0  # until a page shows what its node has
LOOK_S: Final = 2.0
HOME: Final = (("123", "Ann Archy"), ("9", "Cyn Ister"), ("77", "Bone Crusher"))
AWAY: Final = (("5", "Owl Capone"), ("21", "Hoot Gun"), ("1000", "Kilo Watt"))
TEAMS: Final = (
    ("home", "Brass Ravens", "#e5484d", "ann", HOME),
    ("away", "Night Owls", "#3aa0ff", "bob", AWAY),
)
DISPUTED: Final = "duration"


class Plan(NamedTuple):
    """When what happens, in seconds from the first entry."""

    cut_s: float = 5.0
    join_s: float = 25.0
    equal_s: float = EQUAL_S
    """By how long after the cable is joined everything must be equal."""
    is_by_hand: bool = False
    """Whether `cut`, `join` and `quit` are read from standard input instead."""
    has_third: bool = False
    """Whether a third laptop joins at the end, and gets everything, too."""


class Laptop:
    """One node, its board, and the person who makes entries there."""

    def __init__(self, name: str, place: Path, blocks: tuple[int, int]) -> None:
        self.name, self.state = name, place / name
        self.node_port, (self.port, self.relayed, self.board) = blocks[0], (blocks[1] + i for i in range(3))
        self.entered: list[Written] = []
        self._client: SyncClient | None = None

    def arguments(self, relayed: int) -> tuple[str, ...]:
        """The command that runs it; each laptop knows only its own end of the cable."""
        options = {
            "name": self.name,
            "state": str(self.state),
            "operator": self.name.capitalize(),
            "listen": f"127.0.0.1:{self.port}",
            "advertise": f"127.0.0.1:{self.relayed}",
            "peer": f"127.0.0.1:{relayed}",
            "serve": str(self.board),
            "node-port": str(self.node_port),
        }
        words = [word for name, value in options.items() for word in (f"--{name}", value)]
        return ("-m", "weft.cli.main", "doc", "join", SESSION, "--no-mdns", *words)

    @property
    def client(self) -> SyncClient:
        """A client of its node; only after `is_ready` was true."""
        assert self._client is not None
        return self._client

    def is_ready(self, stack: ExitStack) -> bool:
        """Whether it is connected with the other laptop; the client is closed with the stack."""
        try:
            if self._client is None:
                self._client = stack.enter_context(SyncClient(self.state, session=SESSION))
            return bool(self._client.status()["active"]) and bool(self.page())
        except DocError:
            return False

    def enter(self, verb: str, *words: str) -> None:
        """Make an entry, with words as behind `weft doc`."""
        self.entered.append(self.client.edit(verb, words))

    def log(self) -> dict[tuple[str, int], bytes]:
        """Every entry in its log."""
        return {(one.source, one.sequence): one.body for one in self.client.log()}

    def conflicts(self) -> list[str]:
        """The ids of the conflicts in its document."""
        return sorted(conflict.id for conflict in self.client.conflicts())

    def page(self) -> dict[str, Any]:
        """What its board shows; empty while there is none."""
        try:
            with urlopen(f"http://127.0.0.1:{self.board}/state.json", timeout=LOOK_S) as answer:  # a fixed address
                shown: dict[str, Any] = json.load(answer)
        except (OSError, ValueError):
            return {}
        return shown


class Act(NamedTuple):
    """One thing that somebody does, so many seconds from the first entry."""

    at: float
    who: str
    what: str
    words: tuple[str, ...]
    """As behind `weft doc`; `NOW` is session time."""


def script(cut_s: float) -> Iterator[Act]:
    """The entries of an endless bout, in order: rosters, then jam after jam.

    While the cable is out, both enter different times for one jam.
    """
    for team, name, colour, who, people in TEAMS:
        yield Act(0.0, who, f"{name} are here", ("set", f"team={team}", f"name={name}", f"color={colour}"))
        for number, person in people:
            added = ("add", f"team={team}", f'<person number="{number}" name="{person}"/>')
            yield Act(0.0, who, f"{number} {person} skates", added)
    jam, at, is_disputed = 1, 0.5, False
    while True:
        is_here = at > cut_s and not is_disputed
        is_disputed = is_disputed or is_here
        yield from _jam(jam, at, is_disputed=is_here)
        jam, at = jam + 1, at + JAM_S + LINEUP_S


def _disputed_at(cut_s: float) -> float:
    """When both have entered different times for one jam."""
    return next(act.at for act in script(cut_s) if act.who == "bob" and act.words[-1].startswith(DISPUTED))


def _jam(jam: int, at: float, *, is_disputed: bool) -> Iterator[Act]:
    where = ("period=1", f"jam={jam}")
    home, away = (people[jam % len(people)][0] for people in (HOME, AWAY))
    yield Act(at, "ann", f"jam {jam} begins", ("set", *where, "timestamp=NOW"))
    lead = f'<lead team="home" person="{home}"/>'
    yield Act(at + 0.4, "bob", f"jam {jam}: lead", ("add", *where, lead))
    for share, who, team, person, points in (
        (0.4, "ann", "home", home, jam % 5),
        (0.6, "bob", "away", away, (jam * 3) % 5),
    ):
        scored = f'<pass team="{team}" person="{person}" points="{points}"/>'
        yield Act(at + share * JAM_S, who, f"jam {jam}: {team} +{points}", ("add", *where, scored))
    foul = f'<penalty team="away" person="{away}" code="B"/>'
    yield Act(at + 0.8 * JAM_S, "bob", f"jam {jam}: penalty of {away}", ("add", *where, foul))
    yield Act(at + JAM_S, "ann", f"jam {jam} ends after {JAM_S:g} s", ("set", *where, f"{DISPUTED}={JAM_S:g}"))
    if is_disputed:
        longer = JAM_S + 1.5
        yield Act(
            at + JAM_S + 0.2, "bob", f"jam {jam} ended after {longer:g} s", ("set", *where, f"{DISPUTED}={longer:g}")
        )


class Bout:
    """The demonstration; `with`."""

    def __init__(self, place: Path, plan: Plan, console: Console) -> None:
        self.plan, self.console = plan, console
        self._blocks = free_blocks(2 * len(NAMES) + 2, BLOCKS_FROM)
        self.laptops = {name: self._laptop(name, place) for name in NAMES}
        self.cables: list[Cable] = []
        self.cut_for = 0.0
        self._place, self._stack, self._fleet = place, ExitStack(), Fleet(place)
        self._begin = self._cut_at = 0.0

    def _laptop(self, name: str, place: Path) -> Laptop:
        return Laptop(name, place, (self._blocks.pop(0), self._blocks.pop(0)))

    def __enter__(self) -> Self:
        """Start both, and wait until they are connected through the cable, and each has a board."""
        try:
            self._start()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _start(self) -> None:
        self._stack.callback(self._fleet.stop_all)
        ann, bob = self.laptops.values()
        self._run(ann, bob.relayed)
        self._run(bob, ann.relayed)
        until(self._are_ready, READY_S, "two laptops that are connected", self._logs)

    def _run(self, laptop: Laptop, relayed: int) -> None:
        """Start a laptop that knows one end of the cable."""
        self.cables.append(Cable(laptop.relayed, laptop.port))
        self._stack.callback(self.cables[-1].close)
        self._fleet.add(Member(laptop.name, laptop.arguments(relayed), laptop.node_port))

    def _are_ready(self) -> bool:
        return all(laptop.is_ready(self._stack) for laptop in self.laptops.values())

    def _logs(self) -> str:
        return "\n".join(f"{path.name}: {path.read_text('utf-8')[-1000:]}" for path in self._place.glob("*.log"))

    # Playing

    def play(self) -> list[str]:
        """Play the whole bout; returns the differences at its end, none if all is well."""
        for laptop in self.laptops.values():
            self.console.print(
                f"{laptop.name}'s board: http://127.0.0.1:{laptop.board}/  operators: …/entry", soft_wrap=True
            )
        self._begin = time.monotonic()
        next_words = _words_of_hand() if self.plan.is_by_hand else self._words_of_plan
        cut_s = self.plan.cut_s if not self.plan.is_by_hand else float("inf")
        acts = script(cut_s)
        act = next(acts)
        joined_at: float | None = None
        while True:
            for word in next_words():
                if word == "cut":
                    self._cut()
                elif word == "join":
                    self._join()
                    joined_at = time.monotonic()
                elif word == "quit":
                    return self.differences(joined_at)
            now = time.monotonic() - self._begin
            if act.at <= now:
                self._do(act)
                act = next(acts)
            else:
                time.sleep(min(STEP_S, act.at - now))

    def _words_of_plan(self) -> list[str]:
        now, plan = time.monotonic() - self._begin, self.plan
        if self._cut_at == 0.0 and now >= plan.cut_s:
            return ["cut"]
        if self._cut_at > 0.0 and now >= plan.join_s:
            return ["join", "quit"]
        return []

    def _do(self, act: Act) -> None:
        laptop = self.laptops[act.who]
        now = f"{laptop.client.status()['time']:.2f}"
        laptop.enter(act.words[0], *(word.replace("NOW", now) for word in act.words[1:]))
        self._say(f"{act.who}  {act.what}")

    def _cut(self) -> None:
        for cable in self.cables:
            cable.cut()
        self._cut_at = time.monotonic()
        self._say("the cable is cut", style="bold red")

    def _join(self) -> None:
        for laptop in self.laptops.values():
            operations_before = len(laptop.log())
            self._say(
                f"{laptop.name}  holds {operations_before} entries, document {laptop.client.digest()['digest'][:8]}"
            )
        for cable in self.cables:
            cable.join()
        self.cut_for += time.monotonic() - self._cut_at
        self._say("the cable is joined", style="bold green")

    def _say(self, text: str, style: str = "") -> None:
        self.console.print(f"{time.monotonic() - self._begin:6.1f} s  {text}", style=style or None, soft_wrap=True)

    # Judging

    def differences(self, joined_at: float | None) -> list[str]:
        """What does not meet JAM-041 when its time is over."""
        begin = joined_at if joined_at is not None else time.monotonic()
        found = self._until_none(self._unequal, begin + self.plan.equal_s)
        self.equal_after = time.monotonic() - begin
        if self.plan.has_third and not found:
            self._say(f"{THIRD} comes, and has seen nothing of it")
            self.laptops[THIRD] = self._laptop(THIRD, self._place)
            self._run(self.laptops[THIRD], self.laptops["ann"].relayed)
            until(self._are_ready, READY_S, "a third laptop that is connected", self._logs)
            found = self._until_none(self._unequal, time.monotonic() + self.plan.equal_s)
        return found or self._until_none(self._unshown, time.monotonic() + BOARD_S)

    def _until_none(self, look: Callable[[], list[str]], ends_at: float) -> list[str]:
        while (found := look()) and time.monotonic() < ends_at:
            time.sleep(STEP_S)
        return found

    def _unequal(self) -> list[str]:
        """Documents, logs and conflicts that differ, and entries that a laptop does not have."""
        laptops = list(self.laptops.values())
        digests = [laptop.client.digest()["digest"] for laptop in laptops]
        logs = [laptop.log() for laptop in laptops]
        conflicts = [laptop.conflicts() for laptop in laptops]
        found = [f"the documents differ: {', '.join(digests)}"] if len(set(digests)) > 1 else []
        entered = [(one.source, one.sequence) for laptop in laptops for one in laptop.entered]
        for laptop, log in zip(laptops, logs, strict=True):
            lacking = [pair for pair in entered if pair not in log]
            found += [f"{laptop.name} lacks {len(lacking)} of {len(entered)} entries"] if lacking else []
        found += ["entries have different bodies"] if not found and any(log != logs[0] for log in logs) else []
        if any(ids != conflicts[0] for ids in conflicts):
            found.append(f"the conflicts differ: {conflicts}")
        return found

    def _unshown(self) -> list[str]:
        """Boards that do not show what their nodes have."""
        found = []
        for laptop in self.laptops.values():
            expected, page = laptop.conflicts(), laptop.page()
            shown = sorted(conflict["id"] for conflict in page.get("conflicts", []))
            if not expected and not self.plan.is_by_hand:
                found.append(f"{laptop.name} reports no conflict, and there was one")
            if shown != expected:
                found.append(f"{laptop.name}'s board shows conflicts {shown}, its node has {expected}")
        return found

    def result(self, found: list[str]) -> dict[str, Any]:
        """The result, as plain data."""
        ann = self.laptops["ann"]
        teams = ann.client.board()["board"]["teams"]
        return {
            "verdict": "FAIL" if found else "PASS",
            "differences": found,
            "entries": sum(len(laptop.entered) for laptop in self.laptops.values()),
            "cut_s": round(self.cut_for, 2),
            "equal_after_s": round(self.equal_after, 2),
            "conflicts": ann.conflicts(),
            "digest": ann.client.digest()["digest"],
            "score": {side: team["score"] for side, team in teams.items()},
        }


def _words_of_hand() -> Callable[[], list[str]]:
    """A function that returns the words typed since its last call, without blocking; the end of input means `quit`."""

    def typed() -> list[str]:
        if not select.select([sys.stdin], [], [], 0)[0]:
            return []
        line = sys.stdin.readline()
        return [line.strip()] if line else ["quit"]

    return typed


def bout(plan: Plan, *, directory: Path | None = None, keep: bool = False, as_json: bool = False) -> int:
    """Run the demonstration; returns 0 if it passed, else 1."""
    if not 0 < plan.cut_s < plan.join_s:
        raise UserError(
            "usage", f"--cut {plan.cut_s:g} is not between 0 and --join {plan.join_s:g}", "--cut 5 --join 25"
        )
    if not plan.is_by_hand and plan.join_s <= (disputed_s := _disputed_at(plan.cut_s)):
        text = f"until {plan.join_s:g} s there is no disagreement yet, and so no conflict to show"
        raise UserError("usage", text, f"--cut {plan.cut_s:g} --join {disputed_s + STEP_S * 6:.1f}")
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that SIGTERM, too, ends its processes
    console = quiet(stderr=as_json, soft_wrap=False, highlight=True)
    with ExitStack() as stack:
        place = directory or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="weft-bout-")))
        place.mkdir(parents=True, exist_ok=True)
        console.print("two laptops are starting …")
        shown = stack.enter_context(Bout(place.resolve(), plan, console))
        found = shown.play()
        result = shown.result(found)
        if as_json:
            print(json.dumps(result))
        _print(console, result)
        if keep:
            console.print("both go on until Ctrl-C: look at their boards")
            signal.pause()
    return NOT_SO if found else DONE


def _print(console: Console, result: dict[str, Any]) -> None:
    for line in result["differences"]:
        console.print(f"  {line}", style="red", soft_wrap=True)
    score, conflicts = result["score"], len(result["conflicts"])
    console.print(
        f"[bold]{result['verdict']}[/bold]: {result['entries']} entries of two laptops, cut for {result['cut_s']:g} s; "
        f"equal {result['equal_after_s']:g} s after the cable was joined: {score['home']} : {score['away']}, "
        f"{conflicts} conflict{'' if conflicts == 1 else 's'} shown on every board",
        soft_wrap=True,
    )

"""A person who edits documents at a node, as planned, through the socket in its state directory.

An entry answered with `ok` must be in the log of every node of that session in the end.
"""

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from weft.sim.plan import Action
from weft.wire.document import programs
from weft.wire.document.clients import Asked

if TYPE_CHECKING:
    from weft.sim.machine import Machine

CHANNEL: Final = "doc-clients"
PEER: Final = b"editor"
REACH_NS: Final = 100_000  # from one process to another on the same machine
PERIODS, JAMS, TEAMS = 2, 4, ("home", "away")


class Editor:
    """One program beside a node; it runs whenever the node runs."""

    def __init__(self, machine: "Machine") -> None:
        self.machine = machine
        self.asked: dict[bytes, str] = {}
        """Entries without an answer, by id: of which session."""
        self.eids: list[str] = []
        """Elements that were added, and may be removed."""
        self._serial = 0

    def note_start(self) -> None:
        """The node's process has begun."""

    def note_end(self) -> None:
        """The node's process has ended: nothing is answered any more."""
        self.asked.clear()

    def obey(self, action: Action) -> None:
        """Make a planned entry.

        `how`: set, add or remove; `number`: in which session, and where in the document; `second`: the value.
        """
        sessions = self.machine.plan.sessions
        session = sessions[action.number % len(sessions)]
        place, recorder = action.number // len(sessions), self.machine.fabric.recorder
        args = self._args(action, place)
        if args is None:
            return
        self._serial += 1
        number = b"%d" % self._serial
        self.asked[number] = session
        recorder.counts["entries"] += 1
        frames = programs.encode_request(Asked(number, "edit", session, args))
        self.machine.later(REACH_NS, partial(self.machine.hear, CHANNEL, PEER, frames, None))

    def _args(self, action: Action, place: int) -> dict[str, Any] | None:
        period, jam = 1 + place % PERIODS, 1 + place // PERIODS % JAMS
        where = [f"period={period}", f"jam={jam}"]
        if action.how == "set":
            return {"verb": "set", "words": [*where, f"duration={action.second}"]}
        if action.how == "add":
            penalty = ["penalty", f"team={TEAMS[place % 2]}", f"person={action.second % 20}", "code=B"]
            return {"verb": "add", "words": [*where, *penalty]}
        if not self.eids:
            return None
        return {"verb": "remove", "words": [f"eid={self.eids.pop(action.second % len(self.eids))}"]}

    def deliver(self, frames: list[bytes]) -> bool:
        """An answer of the node; it arrives after a short delay."""
        self.machine.later(REACH_NS, partial(self._hear, frames))
        return True

    def _hear(self, frames: list[bytes]) -> None:
        answer = programs.decode_answer(frames)
        session = self.asked.pop(answer.id, None)
        if session is None:
            return
        recorder, machine = self.machine.fabric.recorder, self.machine
        if answer.code:
            recorder.meet(f"an entry refused: {answer.code}")
            return
        self.eids += answer.body["eids"]
        recorder.counts["entries acknowledged"] += 1
        recorder.counts["taken"] += 1
        source = answer.body["source"].replace("-", "")
        recorder.note(machine.name, machine.era, "ok", "entered", [session, source, answer.body["sequence"]])

    def waits(self) -> str:
        """What it waits for; empty if nothing."""
        return f"{len(self.asked)} answers to an editor" if self.asked else ""

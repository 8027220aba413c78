"""What a broker promises to watchers of its catalog (CHK-017), and about removed services (CHK-011).

The history lines are these. `announced`: a change of the catalog is durable at the broker; each start of the broker has a
name of its own and numbers its changes 1, 2, 3. `opened`: a start of the broker begins with these services from its
journal. `mirrored`: a watcher gets the whole list as of that change; the list itself may be left out. `told`: the watcher
gets the next change. `unwatched`: it stops watching. `quiet`: there was time for all messages to arrive.
"""

from bisect import bisect_right
from typing import ClassVar, Final

from weft.checks.checker import Checker
from weft.checks.history import Fact, Unknown, Violation

REMOVED: Final = ("remove", "leave")
"""Operations after which a service is no longer listed; after any other it is."""


class Listing:
    """The services that one start of a broker lists, as of any of its changes."""

    def __init__(self) -> None:
        self.turns: dict[str, list[int]] = {}
        """Per name: the changes with which it was alternately listed and removed, beginning with a listing."""

    def note(self, name: str, index: int, *, is_there: bool) -> None:
        """From this change on the name is listed, or is not."""
        turns = self.turns.setdefault(name, [])
        if is_there != bool(len(turns) % 2):
            turns.append(index)

    def has(self, name: str, index: int) -> bool:
        """Whether the name was listed at that change."""
        return bisect_right(self.turns.get(name, ()), index) % 2 == 1

    def names(self, index: int) -> list[str]:
        """All that were listed then, sorted."""
        return sorted(name for name in self.turns if self.has(name, index))


class Watched(Checker):
    """A watcher is at an index of one start of a broker; the next change that it gets is the one after that index.

    A whole list that it gets has exactly the services that are listed as of its index.
    """

    rule = "watched"
    HEARS: ClassVar = {
        ("durable", "announced"): "note_announced",
        ("info", "opened"): "note_opened",
        ("ok", "mirrored"): "note_mirrored",
        ("ok", "told"): "note_told",
        ("ok", "unwatched"): "note_unwatched",
        ("info", "quiet"): "note_quiet",
    }

    def __init__(self) -> None:
        self.changes: dict[tuple[str, int], list[str]] = {}
        """Per start of a broker and index: operation and name."""
        self.last: dict[str, int] = {}
        self.listings: dict[str, Listing] = {}
        self.brokers: dict[str, str] = {}
        """The broker of each start."""
        self.newest: dict[str, str] = {}
        """Per broker: its newest start."""
        self.watchers: dict[str, Fact] = {}
        """Per watcher: the fact that brought it to its index."""
        self.is_quiet = False

    def note_opened(self, fact: Fact) -> None:
        """A start of the broker, and what it lists before its first change."""
        epoch, names = fact.value
        self._begin(epoch, fact)
        listing = self.listings.setdefault(epoch, Listing())
        for name in names:
            listing.note(name, 0, is_there=True)

    def note_announced(self, fact: Fact) -> None:
        epoch, index, operation, name = fact.value
        expected = self.last.get(epoch, 0) + 1
        if index != expected:
            self.broken(f"{fact.node} announces change {index} of {epoch} where {expected} is due", fact)
        self._begin(epoch, fact)
        self.last[epoch] = index
        self.changes[epoch, index] = [operation, name]
        self.listings.setdefault(epoch, Listing()).note(name, index, is_there=operation not in REMOVED)

    def _begin(self, epoch: str, fact: Fact) -> None:
        self.brokers[epoch], self.newest[fact.node] = fact.node, epoch

    def note_mirrored(self, fact: Fact) -> None:
        """The watcher took a whole list, as of that index."""
        watcher, epoch, index, *names = fact.value
        if index > self.last.get(epoch, 0):
            self.broken(f"{watcher} is given a list as of {index} of {epoch}, which is not durable", fact)
        listing = self.listings.get(epoch, Listing())
        if names and sorted(names[0]) != listing.names(index):
            wrong = sorted({*names[0]} ^ {*listing.names(index)}) or ["a name twice"]
            self.broken(f"the list that {watcher} is given as of {index} of {epoch} is wrong about {wrong[0]}", fact)
        self.watchers[watcher] = fact

    def note_told(self, fact: Fact) -> None:
        watcher, epoch, index, operation, name = fact.value
        if self.changes.get((epoch, index)) != [operation, name]:
            self.broken(f"{watcher} is told {operation} {name} as {index} of {epoch}, which is not durable", fact)
        stands = self.watchers.get(watcher)
        if stands is None or stands.value[1:3] != [epoch, index - 1]:
            where = "nowhere" if stands is None else f"at {stands.value[2]} of {stands.value[1]}"
            self.broken(f"{watcher} stands {where}, and is told change {index} of {epoch}", fact)
        self.watchers[watcher] = fact

    def note_unwatched(self, fact: Fact) -> None:
        self.watchers.pop(fact.value[0], None)

    def note_quiet(self, fact: Fact) -> None:
        self.is_quiet = True
        for watcher, stands in self.watchers.items():
            newest = self.newest.get(self.brokers.get(stands.value[1], ""), "")
            if stands.value[1:3] != [newest, self.last.get(newest, 0)]:
                self.broken(
                    f"after quiet {watcher} still stands at {stands.value[2]} of {stands.value[1]}", stands, fact
                )

    def end(self) -> Violation | Unknown | None:
        if self.watchers and not self.is_quiet:
            return Unknown(self.rule, "the history ends before quiet, so nobody knows what watchers would have heard")
        return None


class Deregistered(Checker):
    """A removed service is only listed again after a registration, also after a restart of the broker (CHK-011).

    If the broker's disk was lost, or restored from an old copy, it may list services that it had removed since that copy.
    """

    rule = "no_resurrection"
    HEARS: ClassVar = {
        ("info", "disk"): "note_disk",
        ("durable", "announced"): "note_announced",
        ("info", "opened"): "note_opened",
    }

    def __init__(self) -> None:
        self.live: dict[str, set[str]] = {}
        """Per broker: the services that are registered and not removed."""
        self.gone: dict[tuple[str, str], Fact] = {}
        """Per broker and name: its removal."""
        self.is_excused: set[str] = set()

    def note_disk(self, fact: Fact) -> None:
        self.is_excused.add(fact.node)

    def note_announced(self, fact: Fact) -> None:
        _, _, operation, name = fact.value
        live = self.live.setdefault(fact.node, set())
        if operation in REMOVED:
            live.discard(name)
            self.gone[fact.node, name] = fact
            return
        if operation not in ("register", "enter", "add"):
            self._judge(name, f"is told to be `{operation}`", fact)
        live.add(name)

    def note_opened(self, fact: Fact) -> None:
        for name in fact.value[1]:
            self._judge(name, "stands in the journal", fact)
        self.live[fact.node] = set(fact.value[1])
        self.is_excused.discard(fact.node)

    def _judge(self, name: str, how: str, fact: Fact) -> None:
        if name in self.live.get(fact.node, ()) or fact.node in self.is_excused:
            return
        removal = self.gone.get((fact.node, name))
        why = "was removed" if removal is not None else "was never registered"
        self.broken(f"{name} {why} at {fact.node}, and {how}", *([removal] if removal else []), fact)

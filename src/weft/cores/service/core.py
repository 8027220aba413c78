"""A service as its broker sees it (CAT-023): registers, beats, and registers again."""

from collections.abc import Iterable
from typing import Any

from weft.base.chance import Chance
from weft.base.effects import Effect, Source
from weft.base.now import Now
from weft.base.records import CoreRecord, Entry
from weft.cores.service.messages import ServiceSettings
from weft.cores.service.states import State


class Service:
    """One instance of a service."""

    name = "service"

    def __init__(self, settings: ServiceSettings, chance: Chance) -> None:
        self.settings = settings
        self.state = State.STOPPED
        self._chance = chance
        self._effects: list[Effect] = []

    def restore(self, entries: Iterable[Entry], now: Now) -> None:
        """Nothing of a service is kept."""

    def condense(self) -> Iterable[CoreRecord]:
        return ()

    def receive(self, message: Any, source: Source, now: Now) -> None:
        """Hear the broker: a Message, a Beacon or Beats."""

    def command(self, order: Any, now: Now) -> None:
        """Start, Update or Stop."""

    def wake(self, now: Now) -> None:
        """Time has passed."""

    def deadline(self) -> int | None:
        return None

    def effects(self) -> list[Effect]:
        done, self._effects = self._effects, []
        return done

"""Datagrams as UDP really behaves (SIM-020)."""

from collections import Counter
from typing import NamedTuple

from weft.sim.noise import NoiseSource
from weft.sim.sockets import Host, Path
from weft.sim.world import World


class Datagrams:
    """Datagrams: loss, duplication, any order, bytes changed (FLT-010, FLT-011)."""

    def __init__(self, world: World, seed: str, weather: "Weather") -> None:
        self.world, self.seed, self.weather = world, seed, weather
        self.fates: Counter[str] = Counter()
        """Counts what became of datagrams that did not simply arrive."""
        self._noise: dict[tuple[str, str, str], NoiseSource] = {}

    def send(  # tidy: sender, receiver, channel, message
        self, here: str, source: bytes, there: Host, path: Path, frames: list[bytes], channel: str = "beacon"
    ) -> None:
        """Send one datagram to one of its receivers."""
        key = (here, there.name, channel)
        source_of = self._noise.get(key)
        if source_of is None:
            source_of = self._noise[key] = NoiseSource(self.seed, f"{here}>{there.name}/{channel}")
        noise, weather = source_of.draw(), self.weather
        if not path.is_open or noise.loss < weather.loss:
            self.fates["lost"] += 1
            return
        due = self.world.at + path.least_ns + (path.spread_ns * noise.delay >> 32)
        if noise.reordering < weather.reordering:
            self.fates["late"] += 1
            due += weather.late_ns * noise.second >> 32
        arriving = frames
        if noise.damage < weather.damage:
            self.fates["damaged"] += 1
            arriving = _damaged(frames, noise.second)
        self.world.call_at(due, self._arrive, (there, channel, source, arriving))
        if noise.duplication < weather.duplication:
            self.fates["doubled"] += 1
            self.world.call_at(
                due + (weather.late_ns * noise.second >> 32), self._arrive, (there, channel, source, arriving)
            )

    def _arrive(self, what: tuple[Host, str, bytes, list[bytes]]) -> None:
        there, channel, source, frames = what
        if there.is_listening:
            there.hear(channel, source, frames, None)


class Weather(NamedTuple):
    """The faults of datagrams; shares in 65,536ths."""

    loss: int = 0
    duplication: int = 0
    reordering: int = 0
    damage: int = 0
    late_ns: int = 0


def _damaged(frames: list[bytes], where: int) -> list[bytes]:
    """A datagram with one byte of its first frame changed."""
    data = bytearray(frames[0])
    data[where % len(data)] ^= 1 + (where >> 16) % 255
    return [bytes(data), *frames[1:]]

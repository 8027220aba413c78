"""The beacon as the core says it (BEA-001, BEA-002, BEA-007)."""

from typing import Any

import pytest

from weft.base.chance import Chance
from weft.base.effects import Send
from weft.base.now import SECOND, Now, seconds
from weft.cores.catalog.context import BEACON
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.messages import CatalogSettings, Ports, Stop
from weft.wire.catalog import beacon as codec
from weft.wire.catalog.messages import Beacon


def at(second: float) -> Now:
    return Now(SECOND + seconds(second), 1_795_227_299 * SECOND)


def catalog(**settings: Any) -> Catalog:
    return Catalog(CatalogSettings(**settings), bytes(16), 7, Chance("beacons"))


def said(core: Catalog) -> list[Beacon]:
    effects = core.effects()
    beacons = [effect for effect in effects if isinstance(effect, Send) and effect.channel == BEACON]
    assert all(effect.peer == b"" for effect in beacons)
    return [effect.message for effect in beacons]


def said_until(core: Catalog, end: float) -> list[float]:
    """When it was said, if the core is woken at its deadline and at no other time."""
    found = []
    while (due_at := core.deadline()) is not None and due_at <= at(end).mono:
        core.wake(Now(due_at, 0))
        found += [(due_at - SECOND) / SECOND] * len(said(core))
    return found


@pytest.mark.proves("BEA-001", "CAT-002")
def test_the_beacon_says_the_ports_the_epoch_and_the_network() -> None:
    core = catalog(port=15_246, net="blue")
    core.command(Ports(beats=5_250, events=5_251), at(0))
    core.wake(at(0))
    (frame,) = [codec.encode(beacon) for beacon in said(core)]
    epoch = core.context.epoch
    assert [f"SHALOM 15246 dbp=1 id={epoch} hb=5250 pub=5251 caps=f64,lvc,log,tap net=blue".encode()] == frame


@pytest.mark.proves("BEA-001")
def test_nothing_is_said_before_the_ports_are_known_nor_after_the_end() -> None:
    core = catalog()
    core.wake(at(0))
    assert [] == said(core)
    core.command(Ports(1, 2), at(1))
    assert [1.0, 2.0, 3.0] == said_until(core, 3.5)
    core.command(Stop(), at(3.5))
    assert [] == said_until(core, 60)


@pytest.mark.proves("BEA-001")
@pytest.mark.parametrize(("interval_s", "expected"), [(0.2, 16), (1, 4), (60, 1), (0, 0)])
def test_it_is_said_each_interval(interval_s: float, expected: int) -> None:
    core = catalog(beacon_ns=seconds(interval_s))
    core.command(Ports(1, 2), at(0))
    assert expected == len(said_until(core, 3))


def test_what_was_missed_in_a_pause_is_not_made_up_for() -> None:
    core = catalog()
    core.command(Ports(1, 2), at(0))
    core.wake(at(100))
    assert 1 == len(said(core))
    assert [101.0, 102.0] == said_until(core, 102)


@pytest.mark.proves("BEA-007")
def test_with_a_key_it_is_signed() -> None:
    core = catalog(beacon_key="a secret")
    core.command(Ports(1, 2), at(0))
    core.wake(at(0))
    (beacon,) = said(core)
    read = codec.decode(codec.encode(beacon))
    assert codec.is_signed(read, b"a secret")
    assert not codec.is_signed(read, b"another")

"""The page of limits is made from the modules, and has every number of each (SEC-041)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house import limitspage
from tests.house.limitspage import Limit

TEXT = '''\
A: Final = 64 << 10  # bytes: of one
B: Final = (
    7  # of that
)
C: Final = 2.5
"""Seconds
of it."""
D: Final = "no number"
_E: Final = 3
F: Final[dict[str, int]] = {}
'''
VALUES = {"A": 65_536, "B": 7, "C": 2.5, "D": "no number", "_E": 3, "F": {}}


@pytest.mark.generates
@pytest.mark.proves("SEC-041", part="the manual's page of limits is made from the modules")
def test_the_page_of_limits_is_that_of_the_modules(committed: Callable[[Path, str], None]) -> None:
    committed(limitspage.PAGE, limitspage.render())


def test_every_number_is_shown_with_what_is_said_of_it() -> None:
    expected = [Limit("A", 65_536, "bytes: of one"), Limit("B", 7, "of that"), Limit("C", 2.5, "Seconds of it.")]
    assert expected == list(limitspage.limits_in(TEXT, VALUES))


@pytest.mark.parametrize(
    "value, expected",
    [(65_536, "65,536"), (2.5, "2.5"), ((1, 0.5), "1, 0.5"), (1 << 62, "2^62"), ((1 << 63) - 1, "2^63 - 1")],
)
def test_a_number_is_shown_as_it_is_read(value: object, expected: str) -> None:
    assert expected == limitspage.shown(value)


@pytest.mark.parametrize(
    "module, name, expected",
    [
        ("weft.wire.beacon", "BEACON_BYTES_MAX", True),
        ("weft.wire.beacon", "FRAMES", False),
        ("weft.cores.chains.limits", "SWEEP_NS", True),
        ("weft.node.cfgfile", "HEARTBEAT_MAX_S", True),
        ("weft.shell.sockets", "BACKLOG", False),
    ],
)
def test_of_a_format_only_what_bounds_is_on_it(module: str, name: str, expected: bool) -> None:
    assert expected == limitspage.is_limit(module, name)


def test_cores_shell_and_clients_are_on_it() -> None:
    names = set(limitspage.modules())
    assert {
        "weft.cores.store.limits",
        "weft.shell.http.limits",
        "weft.client.chain.limits",
        "weft.wire.beacon",
        "weft.shell.crowd",
        "weft.base.keys",
        "weft.node.fleetparts",
    } <= names
    assert not names & {"weft.torture.limits", "weft.cores.template.limits"}

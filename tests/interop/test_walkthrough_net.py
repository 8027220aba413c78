"""The walk-through of the seed over three machines: each node in a network namespace of its own, every program a process (DEM-007)."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from tests.interop.netns import Net, host_of
from tests.interop.programs import needed
from weft.cli.asking import try_status
from weft.cli.demos.real import Nodes, played
from weft.cli.demos.rows import PARENTS, ROWS, Row

TICKS, PERIOD_S = 8, 0.5
PORT: Final = 27_500
EXEC: Final = "import os, sys; os.execv(sys.argv[1], sys.argv[1:])"
OPEN: Final = """\
host = "{host}"

[security]
mode = "none"
allow_insecure = true
"""


class Machines(Nodes):
    """The three nodes of the walk-through, each at a machine."""

    def __init__(self, place: Path, net: Net) -> None:
        super().__init__(place)
        self._net = net
        self._numbers = {name: number for number, name in enumerate(PARENTS, 1)}
        self.ports = dict.fromkeys(PARENTS, PORT)

    def command(self, name: str, file: Path) -> tuple[str, ...]:
        words = self._net.command(self._numbers[name], [sys.executable, *super().command(name, file)])
        return ("-c", EXEC, *words)

    def status(self, name: str) -> dict[str, Any]:
        async def ask() -> dict[str, Any] | None:
            return try_status(PORT)

        return self._net.at(self._numbers[name]).call(ask()) or {}

    def _settings(self, name: str) -> str:
        parent = PARENTS[name]
        text = super()._settings(name) + OPEN.format(host=host_of(self._numbers[name]))
        endpoint = f"{host_of(self._numbers[parent])}:{PORT}" if parent else ""
        return text.replace(f'parent = "{parent}"', f'parent = "{endpoint}"')


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    needed("ip")
    with Net(3) as net, Machines(tmp_path_factory.mktemp("machines"), net) as nodes:
        yield nodes


@pytest.mark.proves("DEM-007")
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row-{row.number}")
def test_a_row_of_the_walk_through_holds_over_three_machines(machines: Machines, row: Row) -> None:
    wrong = (played(machines, row, TICKS, PERIOD_S * slower).wrong for slower in (1, 2, 4))
    assert [] == next((none for none in wrong if not none), "wrong at any pace")

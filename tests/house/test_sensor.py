"""What a node of the field loads: nothing that plants bugs, and no double of the simulator."""

import re
import subprocess
import sys
from functools import cache
from typing import Final

import pytest

SCRIPT: Final = """
import importlib, pkgutil, sys
for room in {rooms}:
    package = importlib.import_module(room)
    for found in pkgutil.walk_packages(package.__path__, room + "."):
        importlib.import_module(found.name)
print(*sorted(name for name in sys.modules if name.split(".")[:2] in {unwanted}))
print(len([name for name in sys.modules if name.startswith("weft.")]))
"""
ROOMS: Final = ["weft.base", "weft.wire", "weft.cores", "weft.node", "weft.shell.journal", "weft.shell.meters"]
UNWANTED: Final = [["weft", "sim"], ["weft", "testing"], ["weft", "torture"]]


def loaded(rooms: list[str], beside: str) -> tuple[str, int]:
    """What of the unwanted a process has that loads all of some rooms, and how many modules of Weft it has."""
    program = beside + SCRIPT.format(rooms=rooms, unwanted=UNWANTED)
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    unwanted, count = told.stdout.splitlines()
    return unwanted, int(count)


@cache
def of_a_sensor() -> list[str]:
    """The modules of a process that is about to be a sensor."""
    program = "import sys, weft.shell.serve\nprint(*sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return told.stdout.split()


OF_FEW: Final = ("alerts", "catalog", "clone", "document", "drain", "service", "store")
"""Cores that only nodes of some roles run, or none."""


@pytest.mark.proves("HSE-021", part="a node loads no module that plants bugs, and no double of the simulator")
def test_a_node_loads_nothing_of_the_simulator() -> None:
    unwanted, count = loaded(ROOMS, "import weft.shell.serve\n")
    assert unwanted == ""
    assert count > 300


def test_a_sensor_loads_none_of_the_cores_that_it_does_not_run() -> None:
    """What a sensor never runs is a third of all that would be loaded, and it starts as often as its machine."""
    cores = {name.split(".")[2] for name in of_a_sensor() if re.fullmatch(r"weft\..*\.core", name)}
    assert {"carrier", "measurement"} <= cores
    assert set() == cores & set(OF_FEW)


OF_OTHERS: Final = (
    "ctypes",
    "email",
    "http.client",
    "numpy",
    "pandas",
    "psutil",
    "pyarrow",
    "smtplib",
    "tomllib",
    "xml",
)
"""Libraries that a node needs for what few nodes do: probes, notices, mDNS, documents, a lake, files."""
MODULES_MAX: Final = 600
"""Of a sensor, those of Python included: 578 with Python 3.11. Each costs about half a millisecond at every start."""


def test_a_sensor_loads_no_library_that_it_does_not_use() -> None:
    assert [] == [name for name in OF_OTHERS if name in of_a_sensor()]
    assert len(of_a_sensor()) < MODULES_MAX


def test_a_program_that_does_is_found() -> None:
    unwanted, _ = loaded(["weft.shell.meters"], "import weft.sim.disk\n")
    assert {"weft.sim", "weft.sim.disk"} <= set(unwanted.split())

"""Which test runs where: `make test` has some of every kind of promise, `make prove` the rest, `make interop` what needs others.

One mark says what is left out of `make test`: `prove`, with the reason. Each run is dealt out by files to a few processes
of pytest (scripts/check), its shards, of which none collects what another one runs.
"""

import re
from pathlib import Path
from typing import Final

TESTS: Final = Path(__file__).parents[1]

SPARK: Final = frozenset({"pipeline", "source"})
"""Rooms whose tests share a session of Spark."""
PROCESSES: Final = frozenset({"fabric", "peers", "cli", "client", "shell", "clone"})
"""Rooms whose tests are done one after the other: one fleet at a time on this machine's ports."""
PEERS_SPARK: Final = frozenset(
    {
        "test_connect.py",
        "test_declarative.py",
        "test_lake_readers.py",
        "test_objects.py",
        "test_pages_operations.py",
        "test_pages_spark.py",
        "test_wheel_pythons.py",
    }
)
"""What of `tests/interop` needs Spark; all else there is machines and brokers, one after the other."""
HERE: Final = ("spark", "processes", "pure")
"""What needs nothing but Weft."""
SHARDS: Final = (*HERE, "interop-spark", "interop")

LEFT_OUT: Final = re.compile(r"^pytestmark = pytest\.mark\.prove\(", re.MULTILINE)
"""A module of which `make test` runs nothing, so that it need not be imported."""
MENTIONED: Final = re.compile(r"\bprove\b|^@(?:hypothesis\.)?given\(", re.MULTILINE)
"""Without this word in a module, or drawn examples, of which it has more, `make prove` runs nothing of it."""


def shard_of(path: Path) -> str:
    """Which process runs a file of tests; a file is never torn: its fixtures are made once.

    >>> shard_of(TESTS / "pipeline" / "test_oracle.py"), shard_of(TESTS / "base" / "test_keys.py")
    ('spark', 'pure')
    """
    room, *_ = path.relative_to(TESTS).parts
    if room in SPARK:
        return "spark"
    if room == "interop":
        return "interop-spark" if path.name in PEERS_SPARK else "interop"
    return "processes" if room in PROCESSES else "pure"


def has_none(source: str, *, is_prove: bool, is_only: bool) -> bool:
    """Whether a run takes no test of a module, by its source.

    `is_prove`: the run has what `make test` leaves out; `is_only`: it has nothing else.
    """
    return MENTIONED.search(source) is None if is_only else not is_prove and LEFT_OUT.search(source) is not None

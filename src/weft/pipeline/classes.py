"""Classes of Spark's that Java finds ready when it starts: reading them is a large part of a start (PIP-104).

They stand in one file below the state directory, if `weft lake tune` was asked to make it (`tuning`). It is never needed: Java
looks whether the file is of its own version and of these very jars, and else starts as without.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Final

from weft.pipeline.java import Java

QUIET: Final = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""What Java has to say of a file that does not fit goes where its other words go, not among a driver's rows."""


def archive(state: Path, java: Java) -> Path:
    """Where the archive for this Java and this Spark is, or would be."""
    return state / f"classes-java{java.version}-spark{version('pyspark')}.jsa"


def options(state: Path, java: Java) -> tuple[str, ...]:
    """Options of a JVM that finds its classes in the archive; none if there is no archive."""
    kept = archive(state, java)
    return (f"-XX:SharedArchiveFile={kept}", *QUIET) if kept.is_file() else ()


def drop(state: Path) -> int:
    """Delete every archive, those of earlier versions too; how many there were."""
    found = list(state.glob("classes-*.jsa"))
    for path in found:
        path.unlink()
    return len(found)

"""An archive of Spark's classes, which Java loads at its start instead of reading them from jars (PIP-104).

`weft lake tune` makes it, as one file in the state directory (`tuning`); a start then takes much less time. It is optional:
Java ignores an archive that was made by another version or from other jars.
"""

from importlib.metadata import version
from pathlib import Path
from typing import Final

from weft.pipeline.java import Java

QUIET: Final = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""Java's warnings about an archive that does not fit go to standard error, because standard output has a driver's rows."""


def archive(state: Path, java: Java) -> Path:
    """The path of the archive for this Java and this Spark, whether it exists or not."""
    return state / f"classes-java{java.version}-spark{version('pyspark')}.jsa"


def options(state: Path, java: Java) -> tuple[str, ...]:
    """Options with which a JVM uses the archive; none if there is no archive."""
    file = archive(state, java)
    return (f"-XX:SharedArchiveFile={file}", *QUIET) if file.is_file() else ()


def drop(state: Path) -> int:
    """Delete all archives, also of earlier versions; returns how many."""
    found = list(state.glob("classes-*.jsa"))
    for path in found:
        path.unlink()
    return len(found)

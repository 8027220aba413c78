"""The three tables of each stream: rows as received, rows that silver refused, and silver."""

from typing import Final, NamedTuple

from weft.lake.schemas import BRONZE, Column
from weft.pipeline.schemas.silver import (
    CATALOG,
    CONFIGURATION,
    DOCUMENTS,
    EVENTS,
    LOGS,
    MESSAGES,
    SAMPLES,
    STORE,
)
from weft.pipeline.schemas.table import Table, table_of


class Stages(NamedTuple):
    """The tables that a row of a stream can be in."""

    bronze: Table
    quarantine: Table
    silver: Table


def _bronze(stream: str) -> Table:
    grain = "A row as it was received; duplicates and bad rows are included."
    return Table("bronze", stream, BRONZE[stream], grain, "day")


def _quarantine(stream: str) -> Table:
    *others, day = BRONZE[stream].columns
    return table_of(
        f"quarantine.{stream}",
        "A row that silver refused: all columns of bronze, and the reason.",
        (
            *others,
            Column("reason", "string", "why silver refused it (PIP-031)"),
            Column("because", "string", "the reason with the numbers of this row"),
            day,
        ),
        "day",
    )


STAGES: Final = {
    silver.name: Stages(_bronze(silver.name), _quarantine(silver.name), silver)
    for silver in (SAMPLES, MESSAGES, EVENTS, STORE, CATALOG, LOGS, DOCUMENTS, CONFIGURATION)
}
"""Every stream that has a job, by name, in the order in which jobs start."""

"""The stages before silver: rows as received, and rows that silver refused."""

from typing import Final

from weft.lake.schemas import BRONZE, Column
from weft.pipeline.schemas.table import Table, table_of


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


BRONZE_SAMPLES: Final = _bronze("samples")
BRONZE_MESSAGES: Final = _bronze("messages")
BRONZE_EVENTS: Final = _bronze("events")
BRONZE_STORE: Final = _bronze("store")
BRONZE_CATALOG: Final = _bronze("catalog")
BRONZE_LOGS: Final = _bronze("logs")
BRONZE_DOCUMENTS: Final = _bronze("documents")
BRONZE_CONFIGURATION: Final = _bronze("configuration")
QUARANTINE: Final = _quarantine("samples")
QUARANTINE_MESSAGES: Final = _quarantine("messages")
QUARANTINE_EVENTS: Final = _quarantine("events")
QUARANTINE_STORE: Final = _quarantine("store")
QUARANTINE_CATALOG: Final = _quarantine("catalog")
QUARANTINE_LOGS: Final = _quarantine("logs")
QUARANTINE_DOCUMENTS: Final = _quarantine("documents")
QUARANTINE_CONFIGURATION: Final = _quarantine("configuration")

"""`weft reload`: makes a running node use its changed file (OPS-007)."""

import json as to_json
import time
from pathlib import Path
from typing import Any, Final

from weft.cli.asking import post, try_status
from weft.cli.kit.exits import DONE, UNCONFIRMED, complain
from weft.cli.kit.options import Flag
from weft.cli.up import read_schemas, text_of
from weft.client.doc.finding import note
from weft.node.settings import read_document, settings_of

PATIENCE_S: Final = 20.0
LOOK_S: Final = 0.1
CORES: Final = {"store": "store", "catalog": "catalog", "doc": "document"}
"""The core that a table turns on. [notify] and [export] turn on none that has to be waited for."""


def reload(file: Path, /, *, port: int | None = None, json: Flag = False) -> int:
    """Make the running node of FILE use its changed tables: `weft reload node.toml`.

    They are [store], [catalog], [doc], [notify] and [export]. The node restarts in its process, within a second or two; if
    it cannot use the new tables, it goes on with the old ones. All other changes of the file take effect when the process starts again. Metrics, filters and alerts of the fleet
    are changed by weft config load. Exit status 5 if the node is not back with the new tables after 20 seconds.

    Args:
        file: the node's TOML file, as weft up takes it.
        port: first of the node's ten ports; default: the one in the file.
        json: {"name", "tables"}: the changed tables; none if nothing has changed.
    """
    document = read_document(text_of(file), str(file))
    read_schemas(document, file.parent)
    settings = settings_of(document, str(file))
    at = port if port is not None else settings.node.port
    answer = post(at, "reload", document)
    name, tables = settings.node.name, answer["tables"]
    note(document)
    wanted = {CORES[table]: getattr(settings, table) is not None for table in tables if table in CORES}
    if tables and not _is_back(at, answer["era"], wanted):
        text = f"{name} does not follow {_named(tables)}\n  try: weft status --port {at}; its log says why"
        return complain(text, UNCONFIRMED)
    if json:
        print(to_json.dumps({"name": name, "tables": tables}))
    else:
        print(f"{name} follows {_named(tables)} of {file}" if tables else f"{name} follows all of that already")
    return DONE


def _named(tables: list[str]) -> str:
    return ", ".join(f"[{table}]" for table in tables)


def _is_back(port: int, era: int, wanted: dict[str, bool]) -> bool:
    """Whether a later start of the node answers, and has exactly the wanted ones of these cores."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        status: dict[str, Any] | None = try_status(port)
        if status is not None and status["era"] > era:
            return all((core in status["cores"]) == is_wanted for core, is_wanted in wanted.items())
        time.sleep(LOOK_S)
    return False

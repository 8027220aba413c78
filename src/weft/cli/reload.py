"""`weft reload`: let a running node follow its changed file (OPS-007)."""

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
"""Which core a table asks for."""


def reload(file: Path, /, *, port: int | None = None, json: Flag = False) -> int:
    """Let the node of FILE follow [store], [catalog] and [doc] as they are in it now: `weft reload node.toml`.

    Its process goes on: the node starts anew in it, within a second or two, and goes on with the tables before if it cannot. What else
    is different in the file is followed at the next start of the process; metrics, filters and alerts of the fleet by weft config load.
    Exit status 5 if the node is not back with them after 20 seconds.

    Args:
        file: the node's TOML file, as weft up takes it.
        port: first of the node's ten ports, if not that of the file.
        json: {"name", "tables"}: the tables that are different now; none if nothing was.
    """
    document = read_document(text_of(file), str(file))
    read_schemas(document, file.parent)
    settings = settings_of(document, str(file))
    at = port if port is not None else settings.node.port
    told = post(at, "reload", document)
    name, tables = settings.node.name, told["tables"]
    note(document)
    wanted = {CORES[table]: getattr(settings, table) is not None for table in tables}
    if tables and not _is_back(at, told["era"], wanted):
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
    """Whether a later start answers, and has the cores that it shall have, and none that it shall not."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        told: dict[str, Any] | None = try_status(port)
        if told is not None and told["era"] > era:
            return all((core in told["cores"]) == is_wanted for core, is_wanted in wanted.items())
        time.sleep(LOOK_S)
    return False

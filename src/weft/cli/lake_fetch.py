"""`weft lake fetch`: a directory that follows a lake in an object store."""

import time
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from weft.base.errors import StorageFailed, UserError
from weft.cli.home import home_of
from weft.cli.kit.exits import notice
from weft.cli.kit.options import Flag
from weft.lake.fetching import CONSUMER, fetch
from weft.lake.layout import Layout, is_name
from weft.lake.manifest import SegmentFault
from weft.lake.objects import lake_path

EVERY_MIN_S: Final = 0.2  # seconds; each round asks once per drain and stream


def fetch_lake(
    source: str,
    /,
    *,
    lake: Annotated[Path | None, Parameter(name="--lake")] = None,
    every: float | None = None,
    name: str = CONSUMER,
    json: Flag = False,
) -> None:
    """Copy new segments of a lake into a directory: `weft lake fetch s3://bucket/lake --lake ./copy --every 5`.

    Tables need a lake in a directory: run `weft lake run --lake ./copy` beside this. Every file is compared with its
    manifest, and no file is fetched twice. The lake keeps segments until all its copies have them (`weft lake consumers`).

    Args:
        source: the lake: s3://bucket/prefix, with the usual AWS_… in the environment, or a directory.
        lake: the directory of the copy; default: $WEFT_LAKE, else ./lake. A new one is made.
        every: seconds between two rounds; without it there is only one round.
        name: the name of this copy in the lake; each copy of a lake needs its own.
        json: a JSON line per drain and round that had something new.
    """
    if not is_name(name):
        raise UserError("bad-name", f"{name!r} is no name of a copy", "letters, digits, '.', '_' and '-'")
    if every is not None and every < EVERY_MIN_S:
        raise UserError("bad-span", f"--every {every:g} is too often", f"--every {EVERY_MIN_S:g}, or more seconds")
    whole, copy = Layout(lake_path(source)), Layout(home_of(lake).absolute())
    while True:
        try:
            for found in fetch(whole, copy, name):
                line = msgspec.json.encode(found._asdict()).decode()
                text = f"{found.stream} {found.drain[:8]}: {found.segments:,} segments, {found.rows:,} rows"
                print(line if json else text, flush=True)
        except SegmentFault as fault:
            raise UserError(fault.code, str(fault), f"weft lake verify --lake {source}") from None
        except OSError as error:
            if every is None:
                raise StorageFailed(str(error)) from error
            notice(f"{error}; trying again")
        if every is None:
            return
        time.sleep(every)

"""`weft doctor`: whether this machine can run the jobs of a lake, and what mends it if not (PIP-084)."""

import sys
from pathlib import Path
from typing import Annotated, Final

import msgspec
from cyclopts import Parameter

from weft.base.errors import EXIT_CODES

Flag = Annotated[bool, Parameter(negative="")]
Where = Annotated[Path | None, Parameter(name="--lake")]
SIGNS: Final = {"fine": "ok  ", "warning": "look", "broken": "BAD "}


def doctor(*, lake: Where = None, no_spark: Flag = False, json: Flag = False) -> int:
    """Look at Java, Spark and the other packages, space and clock, the lease and the settings of a lake.

    `weft doctor`, or `weft doctor --lake ./lake --no-spark`

    Then Spark is started, has to find Weft's source by itself, writes 1,000 rows and commits them. Each finding that is
    not well names the command that mends it. Exit status 0 if nothing is broken, else 1.

    Args:
        lake: the lake's directory; default: $WEFT_LAKE, else none is looked at.
        no_spark: only what takes no time.
        json: a JSON object per finding.
    """
    import os

    from weft.lake.layout import Layout
    from weft.pipeline.doctor import BROKEN, Doctor
    from weft.pipeline.session import default_state

    named = lake or (Path(os.environ["WEFT_LAKE"]) if os.environ.get("WEFT_LAKE") else None)
    is_well = True
    for found in Doctor(default_state(), Layout(named.absolute()) if named else None).findings(with_spark=not no_spark):
        is_well &= found.state != BROKEN
        if json:
            sys.stdout.write(msgspec.json.encode(found._asdict()).decode() + "\n")
        else:
            print(f"{SIGNS[found.state]} {found.what:10} {found.text}")
            if found.mend:
                print(f"     {'':10} try: {found.mend}")
        sys.stdout.flush()
    return EXIT_CODES["ok" if is_well else "violated"]

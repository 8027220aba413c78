"""How many changed bytes `weft lake check --deep` notices (FLD-030: all of 200 in segments, all of 200 in tables).

    python -m bench.lake_flips [PLACES] [SEED]

A small lake of segments and of one table's files, whose rows are random and not those of the segments, which the check says of
it as it is. One bit anywhere in a file is changed, the lake is checked, the bit is put back: noticed is what names the changed
file as damaged. *Peer*: reading every row of the changed file by PyArrow, which proves the checksums of pages alone.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.parquet as pq

from bench import lake_deep
from tests.pipeline import flips
from weft.base.chance import Chance

KINDS: Final = ("segment", "table")


def is_read(file: Path) -> bool:
    """Whether all rows of a file are read as if nothing were wrong."""
    try:
        pq.read_table(file, page_checksum_verification=True)
    except (OSError, pa.ArrowException, ValueError):
        return False
    return True


def name_of(place: flips.Place) -> str:
    """What the check calls the file when its bytes have changed."""
    is_segment = place.kind == "segment"
    return f"segment {int(place.file.stem)} of messages" if is_segment else place.file.name


def main(count: str = "200", seed: str = "1") -> int:
    """Print how many of each kind were noticed; 1: not all."""
    lake_deep.SEGMENTS, lake_deep.FILES, lake_deep.RECORDS, lake_deep.PAYLOAD = 4, 4, 50, 100
    noticed, peer, tried = Counter[str](), Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="weft-bench-") as directory:
        lake = lake_deep.filled(Path(directory) / "lake")
        before = flips.noticed_in_lake(lake)
        for outcome in flips.play(Path(directory), lake, len(KINDS) * int(count), Chance(f"flips/{seed}"), KINDS):
            kind = outcome.place.kind
            tried[kind] += 1
            is_named = name_of(outcome.place) in outcome.noticed and name_of(outcome.place) not in before
            noticed[kind] += is_named
            peer[kind] += not is_read(outcome.place.file)
            if not is_named:
                print(flips.told(outcome))
    for kind in KINDS:
        print(f"{kind}s: {noticed[kind]} of {tried[kind]} noticed; by reading the file {peer[kind]}")
    return 0 if noticed == tried else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

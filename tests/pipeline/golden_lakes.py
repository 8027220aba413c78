"""Lakes that earlier versions of the program left behind, each whole with its checkpoints.

`golden/first.tar.zst`: three runs of the driver of 0.1.0, schema version 1. Samples of two origins in two batches (a
duplicate, a bad row, a number announced lost), a message, an event, a change of the store, a log record.
`golden/streamed.tar.zst`: much the same of the last driver that kept Spark's own logs of offsets and commits, and copied
segments to bronze. Whenever tables get columns, or a checkpoint another form, a lake of the version before comes here, and none is ever taken away.
"""

import io
import tarfile
from pathlib import Path

import zstandard

from weft.lake.layout import Layout

LAKES = sorted((Path(__file__).parent / "golden").glob("*.tar.zst"))
UNPACKED_MAX = 1 << 24


def opened(packed: Path, home: Path) -> Layout:
    """The lake, unpacked below a directory."""
    data = zstandard.ZstdDecompressor().decompress(packed.read_bytes(), max_output_size=UNPACKED_MAX)
    with tarfile.open(fileobj=io.BytesIO(data)) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)  # 3.11.2 has none; 3.13 warns without
        files.extractall(home / packed.stem)
    return Layout(home / packed.stem)

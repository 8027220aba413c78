"""docs/segments.md is made from the schemas, the layout and the options."""

from collections.abc import Callable
from inspect import getdoc
from pathlib import Path

import pytest

from pyspark_weft import options
from weft.lake import layout, manifest
from weft.lake.schemas import SEGMENTS, VERSION

PAGE = Path(__file__).parents[2] / "docs" / "segments.md"
HEAD = f"""# Segments

What the recorder writes, for whoever reads it without Weft: Parquet files (zstd, plain types, no Arrow schema) and
one line of JSON each. This page is generated from `weft.lake`; version {VERSION} of the schemas.

## Where they lie

{getdoc(layout)}

## Manifests

{getdoc(manifest)}

`format` 1, `stream`, `schema` (version), `drain`, `number`, `rows`, `bytes` and `sha256` of the Parquet file,
`first_received` and `last_received` (ns, null without rows), `lsn` `[first, last]` in the drain's journal, `ranges`
`[[origin, era or null, [[first, last], …]], …]` of what was received, `lost` `[[origin, era, first, last, why], …]`
(`era-end`: the era ended at this number, nothing was lost), `prior`. A stub of deleted rows has all of that, and
`gone` true and `was`, the digest of the manifest that it replaced.

## From Spark

```python
spark.read.format("weft").option("lake", "/data/lake").option("stream", "samples").load()
spark.readStream.format("weft").option("lake", "/data/lake").option("stream", "samples").load()
```

No jar and no call to Weft: install `weft[lake]` where driver and executors run. Options: {{options}}.
"""


@pytest.mark.generates
def test_the_page_says_what_is_written(committed: Callable[[Path, str], None]) -> None:
    usual = {name: text for name, (_, text) in options.USUAL.items()} | {"tasks": "one per core, at most 8"}
    names = ", ".join(f"`{name}`" + (f" ({text})" if text else "") for name, text in usual.items())
    tables = [
        ("samples", SEGMENTS["samples"].markdown()),
        (", ".join(name for name in SEGMENTS if name != "samples"), SEGMENTS["logs"].markdown()),
    ]
    body = "\n".join(f"## Columns of {title}\n\n{table}\n" for title, table in tables)
    committed(PAGE, f"{HEAD.replace('{options}', names)}\n{body}")

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
one line of JSON each. This page is generated from `weft.lake`; version {VERSION} of the schemas. Besides the columns below a
file says where its rows stand: `drain`, `segment` and `row`, as bronze does; so it becomes a file of that table as it is.

## Where they lie

{getdoc(layout)}

## Manifests

{getdoc(manifest)}

`format` 1, `stream`, `schema` (version), `drain`, `number`, `rows`, `bytes` and `sha256` of the Parquet file,
`first_received` and `last_received` (ns, null without rows), `lsn` `[first, last]` in the drain's journal, `ranges`
`[[origin, era or null, [[first, last], …]], …]` of what was received, `lost` `[[origin, era, first, last, why], …]`
(`era-end`: the era ended at this number, nothing was lost), `prior`. A stub of deleted rows has all of that, and
`gone` true and `was`, the digest of the manifest that it replaced. One whose rows were given up has `was`, too, and
`skipped`, why: what it held is lost.

## From Spark

```python
spark.read.format("weft").option("lake", "/data/lake").option("stream", "samples").load()
spark.readStream.format("weft").option("lake", "/data/lake").option("stream", "samples").load()
```

No jar and no call to Weft: install `weft[lake]` where driver and executors run. Options: {{options}}.

## Logs of other systems

`weft lake import` reads sample logs, plain, gzip or zstd, and writes segments as the recorder does, under a drain of
the dataset's own. From there on they are ordinary samples. Formats: `dcamp` (`.dcamp-data`); `csv`, with
`--map at=time,value=temp,source=host` or `--wide time`, and `--tz` for stamps without a zone; `openmetrics`, also
Prometheus' text, with `--at` for lines without a time; `auto` looks at the first line.

```console
$ cat leaf.dcamp-data
1795226590369 source=localhost:55900 value=95133.00 base=217439.00 detail=CPU config-name=proc config-seqid=4 type=percent
1795226591000 type=HUGZ source=localhost:55900
1795226592001 source=localhost:55900 value=nan base=217762.00 detail=CPU config-name=proc config-seqid=4 type=percent
$ weft lake import leaf.dcamp-data --dataset attic
leaf.dcamp-data: dcamp, 3 lines, 1 samples new, 0 held already, 0 changed
  to quarantine: 1 bad-number
  no samples: 1 heartbeats
$ weft lake import leaf.dcamp-data --dataset attic
leaf.dcamp-data: dcamp, 3 lines, 0 samples new, 2 held already, 0 changed
  no samples: 1 heartbeats
```

A sample's origin is its dataset and source (`node` in the tables), its era the file's name and first line, its sequence
the number among its source's lines. So a file that has grown, or was packed since, brings only what is new; a line that
says something else now goes in again and ends in quarantine as `changed`. A line that cannot be read is kept with its
reason. To begin again, choose another dataset. A sample that stands in several files, or twice in one, is so many rows here,
and one in silver; how, and how values are calculated across files, and the way back, stands in [import.md](import.md).
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

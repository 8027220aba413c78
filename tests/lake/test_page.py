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

What the recorder writes, for programs that read it without Weft: Parquet files (zstd, plain types, no Arrow schema), each with a
manifest of one line of JSON. This page is generated from `weft.lake`; version {VERSION} of the schemas. Besides the columns below, a
file has the place of each row in `drain`, `segment` and `row`, as bronze has; so a segment can become a file of bronze as it is.

## Where they lie

{getdoc(layout)}

## Manifests

{getdoc(manifest)}

`format` 1, `stream`, `schema` (version), `drain`, `number`, `rows`, `bytes` and `sha256` of the Parquet file,
`first_received` and `last_received` (ns, null without rows), `lsn` `[first, last]` in the drain's journal, `ranges`
`[[origin, era or null, [[first, last], …]], …]` of what was received, `lost` `[[origin, era, first, last, why], …]`
(`era-end`: the era ended at this number, nothing was lost), `prior`. The metadata of
the file name the start of the node that has written it, `weft.start`: a copy of its disk is another start. If the rows were deleted, a stub replaces the manifest: it has the
same fields, `gone` true, and `was`, the digest of the manifest that it replaces. If an operator gave up the rows, it has `was` and
`skipped`, the reason; the numbers of the segment then count as lost.

## From Spark

```python
spark.read.format("weft").option("lake", "/data/lake").option("stream", "samples").load()
spark.readStream.format("weft").option("lake", "/data/lake").option("stream", "samples").load()
```

No jar and no call to Weft: install `weft[lake]` where driver and executors run. Options: {{options}}.

## Logs of other systems

`weft lake import` reads sample logs, plain, gzip or zstd, and writes segments as the recorder does, under a drain of
the dataset's own. From then on they are ordinary samples. Formats: `dcamp` (`.dcamp-data`); `csv`, with
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

The origin of a sample is made from dataset and source (`node` in the tables), its era from the file's name and first line; its
sequence is the number among the lines of its source. So if a file has grown, or was packed since, only new lines are imported. A
line that was changed is imported again, and goes to quarantine as `changed`. A line that cannot be read is kept with the reason. To
begin anew, choose another dataset. A sample that is in several files, or twice in one, has several rows here and one in silver.
[import.md](import.md) says how that is done, how values are calculated across files, and how to export.
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

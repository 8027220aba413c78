"""Makes tables of the segments of a lake, and opens them for notebooks (PIP-083, PIP-092, PIP-011).

It never changes a segment. The names in `__all__` are public; they need `weft[lake]` and, for `session`, `table` and
`segments`, Java. Start with `runner.py`: the driver, which takes one batch after the other.

```
import weft.pipeline as weft

spark = weft.session()                                    # or a session of your own, from Spark 4.2 on
weft.table(spark, "./lake", "silver.samples", since="2026-11-01").groupBy("node").count().show()
weft.arrow("./lake", "completeness").to_pandas()          # the same without Spark and Java
weft.ask("./lake", "SELECT node, missing FROM completeness", as_of="2026-11-21T12:00Z")   # what `weft sql` answers
weft.segments(spark, "./lake", "samples", since="2026-11-21T12:00Z")   # as received, also what is in no table yet
```
"""

from typing import TYPE_CHECKING, Any

from weft.pipeline.session import Options, session  # imported first: the function has the name of its module

if TYPE_CHECKING:
    from weft.pipeline.reading import arrow, ask, segments, table

__all__ = ["Options", "arrow", "ask", "segments", "session", "table"]


def __getattr__(name: str) -> Any:
    """Import functions that read tables at their first use, because other modules of this package do not need them."""
    if name not in ("arrow", "ask", "segments", "table"):
        raise AttributeError(name)
    from weft.pipeline import reading

    return getattr(reading, name)

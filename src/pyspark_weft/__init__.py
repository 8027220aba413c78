"""The Spark data source `weft`: segments of a lake as a batch or as a stream (PIP-001..010).

Spark finds it by itself, since its module's name begins with `pyspark_`:

    spark.readStream.format("weft").option("lake", "/data/lake").option("stream", "samples").load()

It needs no JVM library and no broker, and never writes: its offsets are positions in files that do not change. Start with
`source.py`.
"""

from pyspark_weft.source import DefaultSource

__all__ = ["DefaultSource"]

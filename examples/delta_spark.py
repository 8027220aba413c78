"""A lake's tables on a session that has Delta's own jars: nothing of Weft is needed to read them.

    pip install delta-spark        # of the release that fits your Spark; it fetches its jars when it starts
    python examples/delta_spark.py /data/lake/tables/silver/samples

Tables are at reader version 1 and writer version 2, so any release opens them. Read only: whoever writes a table of the
lake beside `weft lake run` takes the ground from under its bookkeeping. Without the jars: `weft.pipeline.table`.
"""

import sys

from delta import configure_spark_with_delta_pip
from pyspark.sql import SparkSession


def main(path: str) -> None:
    builder = (
        SparkSession.builder.appName("weft-reader")
        .config("spark.sql.extensions", "io.delta.sql.DeltaSparkSessionExtension")
        .config("spark.sql.catalog.spark_catalog", "org.apache.spark.sql.delta.catalog.DeltaCatalog")
    )
    spark = configure_spark_with_delta_pip(builder).getOrCreate()
    newest = spark.read.format("delta").load(path)
    first = spark.read.format("delta").option("versionAsOf", 1).load(path)
    print(f"{newest.count():,} rows now, {first.count():,} in version 1")
    spark.sql(f"DESCRIBE HISTORY delta.`{path}`").select("version", "timestamp", "operation").show(10, truncate=False)
    changes = spark.readStream.format("delta").load(path)  # what comes, as a stream
    print(changes.schema.simpleString())
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])

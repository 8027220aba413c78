# %% [markdown]
# # A lake, asked
#
# What a fleet has measured, said and decided, from the tables that `weft lake run` makes. It needs `pip install weft[lake]`,
# and a lake: `weft demo --for 2m` makes one. `WEFT_LAKE` names it. Until the last part nothing needs Java.
#
# `lake.ipynb` is made of `lake.py`, cell by cell.

# %%
import os

import weft.pipeline as weft

lake = os.environ.get("WEFT_LAKE", "./lake")

# %% [markdown]
# ## The fleet at a glance
#
# Who is there, how much has come of each, and whether anything is missing. Samples are numbered without holes, so what
# is missing is known by its numbers, not guessed.

# %%
fleet = weft.ask(
    lake,
    """
    SELECT node, sum(received)::BIGINT AS received, sum(missing)::BIGINT AS missing, max(last_at) AS last_seen,
           string_agg(DISTINCT state, ', ') AS states
    FROM completeness WHERE stream = 'samples' GROUP BY node ORDER BY node
    """,
)
fleet.to_pandas()

# %%
latest = weft.ask(
    lake,
    """
    SELECT node, config_name, labels, coalesce(result, value) AS value, "at"
    FROM latest JOIN series USING (series) ORDER BY node, config_name
    """,
)
latest.to_pandas()

# %% [markdown]
# ## One node's day
#
# Roll-ups are made of calculated values: a rate is a rate, not a counter. `since` leaves out older days before any of their
# files is opened.

# %%
node = fleet.column("node")[-1].as_py()
day = fleet.column("last_seen")[-1].as_py().date()
minutes = weft.arrow(lake, "rollup_1m", since=day).to_pandas()
minutes = minutes[(minutes.node == node) & (minutes.n > 0)].sort_values(["series", "window_start"])
minutes.assign(mean=minutes["sum"] / minutes["n"])[["window_start", "series", "n", "mean", "min", "max"]].head(20)

# %% [markdown]
# ## Late data, before and after
#
# A machine that was away sends what it has measured meanwhile; the windows that were published without it are then put
# right. Every batch is a version of each table, so both can be asked for: as of the instant at which a batch was done.

# %%
batches = weft.ask(lake, "SELECT batch, \"at\" FROM meta.progress WHERE job = 'samples' ORDER BY batch").to_pylist()
question = "SELECT sum(n)::BIGINT AS n, sum(sum) AS total FROM rollup_1h"
before = weft.ask(lake, question, as_of=batches[0]["at"]).to_pylist()
after = weft.ask(lake, question).to_pylist()
before, after

# %%
weft.arrow(lake, "corrections").to_pandas().head(20)

# %% [markdown]
# ## As it was
#
# The same instant for every table of a question: what stood in them, not what they say today. So a join fits together, and
# a report can be made again.

# %%
then = batches[0]["at"]
rows = {
    name: (
        weft.ask(lake, f"SELECT count(*) AS n FROM {name}", as_of=then).to_pylist()[0]["n"],
        weft.ask(lake, f"SELECT count(*) AS n FROM {name}").to_pylist()[0]["n"],
    )
    for name in ("bronze.samples", "silver.samples", "silver.values", "rollup_1m")
}
rows

# %% [markdown]
# What the shared store and the configuration held at a time of the fleet's own clock is another question, and has its own
# tables: `store_history` and `configuration_history` have from when to when each value stood.

# %%
weft.arrow(lake, "store_history").to_pandas().head(20)

# %% [markdown]
# ## What is not as it was
#
# Each series beside its own last day and the same hour of its last week; `because` has the numbers.

# %%
odd = weft.arrow(lake, "anomalies").to_pandas()
odd.sort_values("start").tail(20)[["node", "kind", "start", "until", "because"]]

# %% [markdown]
# ## The same with Spark
#
# Any session from Spark 4.2 on will do, without a jar; this one has Weft's settings and finds a Java. `table` is a data frame
# over the Parquet files of the table's log. What is in no table yet can be read from the segments.

# %%
spark = weft.session()
values = weft.table(spark, lake, "silver.values", since=day)
values.where("result is not null").groupBy("node").agg({"result": "avg", "sequence": "count"}).orderBy("node").show()

# %%
weft.segments(spark, lake, "samples", since=day).groupBy("origin").count().show()

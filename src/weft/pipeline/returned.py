"""Which rows have come back from quarantine, from the tables alone (PIP-033): batches that took nothing and gave something."""

from typing import TYPE_CHECKING

from weft.pipeline.tables import PROGRESS

if TYPE_CHECKING:
    from weft.pipeline.delta import Tables
    from weft.pipeline.kinds import Kind


def returned_since(tables: "Tables", kind: "Kind", mark: int, upto: int) -> dict[tuple[str, int | None], int]:
    """How many rows of each origin and era batches `mark + 1` to `upto` of a stream have brought back."""
    import pyarrow.compute as pc
    import pyarrow.dataset as ds

    of_job = (pc.field("job") == kind.stream) & (pc.field("rows_quarantine") < 0)
    news = ds.dataset(tables.files(PROGRESS, f"batch > {mark} AND batch <= {upto}"), schema=PROGRESS.schema.arrow())
    is_new = (pc.field("batch") > mark) & (pc.field("batch") <= upto)
    found: dict[tuple[str, int | None], int] = {}
    for number in news.to_table(columns=["batch"], filter=of_job & is_new)["batch"].to_pylist():
        rows = ds.dataset(tables.files(kind.silver, f"batch = {number}"), schema=kind.silver.schema.arrow())
        back = rows.to_table(columns=["origin", "era"], filter=pc.field("batch") == number)
        for entry in back.group_by(["origin", "era"]).aggregate([([], "count_all")]).to_pylist():
            key = (entry["origin"], entry["era"])
            found[key] = found.get(key, 0) + entry["count_all"]
    return found

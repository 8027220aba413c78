"""A view: a table without files, computed from other tables for each query."""

from typing import NamedTuple

from weft.pipeline.schemas.table import Table


class View(NamedTuple):
    """One view: its columns, and the SQL that makes them."""

    table: Table
    """The name for queries, and the columns it promises."""
    over: tuple[Table, ...]
    """The tables it is made from.

    It can be queried once the first of them exists; others count as empty until they exist.
    """
    sql: str
    """A SELECT in which `{silver_store}` stands for the rows of `silver.store`."""

    def select(self, names: dict[str, str]) -> str:
        """The SELECT; `names` maps the full name of each table to its name in DuckDB."""
        return self.sql.format(**{table.full_name.replace(".", "_"): names[table.full_name] for table in self.over})

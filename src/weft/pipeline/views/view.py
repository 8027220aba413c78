"""A view: a table without files, computed from other tables for each query."""

from typing import NamedTuple

from weft.pipeline.schemas.table import Table


class View(NamedTuple):
    """One view: its columns, and the SQL that makes them."""

    table: Table
    """Its name in queries, and its columns."""
    over: tuple[Table, ...]
    """The tables from which it is computed. The first of them must exist; the others count as empty until they do."""
    sql: str
    """A SELECT in which `{silver_store}` stands for the rows of `silver.store`."""

    def select(self, names: dict[str, str]) -> str:
        """The SELECT; `names` maps the full name of each table to its name in DuckDB."""
        return self.sql.format(**{table.full_name.replace(".", "_"): names[table.full_name] for table in self.over})

"""What a view is: a table of no files, made anew of other tables by whoever asks."""

from typing import NamedTuple

from weft.pipeline.schemas.table import Table


class View(NamedTuple):
    """One view: its columns, and how DuckDB makes them."""

    table: Table
    """Under which name it is asked for, and what it promises."""
    over: tuple[Table, ...]
    """What it is made of. It can be asked as soon as the first of them is there; others count as empty until they are."""
    sql: str
    """A SELECT in which `{silver_store}` stands for the rows of `silver.store`."""

    def select(self, names: dict[str, str]) -> str:
        """The SELECT; `names` says what each table is called in DuckDB, by its full name."""
        return self.sql.format(**{table.full_name.replace(".", "_"): names[table.full_name] for table in self.over})

"""Ask the lake in SQL, at once: DuckDB over the Arrow datasets of the Delta logs, without Java or network (PIP-090).

Each table that a query names is opened from its log, so projections and filters reach the Parquet files. Roll-ups and
last values are folded every minute or so; their views add what stands in silver behind the last fold, so an answer is
current to the last batch. Nothing can be written, no extension is loaded, no file outside the lake is opened.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.checkpoint import read_record
from weft.pipeline.tables import ALL, LATEST, SAMPLES, VALUES, VIEWS, Table
from weft.pipeline.views.folded import LATEST_VIEW, ROLLUP_VIEW, WIDTHS
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa

JOB: Final = "samples"
LAYERS: Final = ("gold", "silver", "bronze", "quarantine", "meta")
"""In which order a table's bare name is looked up; a layer can always be written in front."""
SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "threads": "2",
}

_UNQUOTED_AT: Final = re.compile(r"""(?<!["'.\w])at(?!["'\w])""", re.IGNORECASE)


class Lake:
    """A lake that can be asked. Open it with `with`; each instance sees the versions of its first use of a table."""

    def __init__(self, root: Path | str) -> None:
        """UserError `no-lake` if there is none."""
        self.layout = Layout(root)
        self._registered: set[str] = set()
        self._connection: duckdb.DuckDBPyConnection | None = None
        if not self.layout.lake_json.exists():
            raise UserError("no-lake", f"there is no lake in {root}", "--lake DIR, or weft up with a root that drains")

    def __enter__(self) -> Self:
        import duckdb

        self._connection = duckdb.connect(":memory:", config=SETTINGS)
        self._connection.execute("SET TimeZone = 'UTC'")
        for layer in LAYERS:
            self._connection.execute(f"CREATE SCHEMA {layer}")
        self._connection.execute(f"SET search_path = '{','.join(LAYERS)}'")
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def query(self, sql: str, limit: int | None = None) -> "pa.Table":
        """The rows of one SELECT, at most `limit`. UserError `bad-sql` says what is wrong and which tables there are."""
        import duckdb

        connection = self._open
        for table in self._named_in(sql):
            self._register(table)
        try:
            (statement,) = connection.extract_statements(sql)
            if statement.type not in (duckdb.StatementType.SELECT, duckdb.StatementType.EXPLAIN):
                raise UserError("bad-sql", "a lake is only read", "SELECT, WITH, DESCRIBE or EXPLAIN")
            connection.execute("SET enable_external_access = false")
            answer = connection.sql(sql).to_arrow_table()
            return answer if limit is None else answer.slice(0, limit)
        except ValueError:
            raise UserError("bad-sql", "exactly one statement can be asked at a time", "weft sql 'SELECT …'") from None
        except duckdb.Error as error:
            is_grammar = isinstance(error, duckdb.ParserException)
            raise UserError("bad-sql", str(error).splitlines()[0], self._mend(sql, is_grammar=is_grammar)) from None

    def _mend(self, sql: str, *, is_grammar: bool) -> str:
        """What to type instead of a question that DuckDB does not understand."""
        if is_grammar and _UNQUOTED_AT.search(sql):
            return 'at is also a word of SQL: write "at" in double quotes, or samples.at'
        there = ", ".join(sorted(table.full_name for table in self._all())) or "none yet: weft lake run makes them"
        return f"weft lake schema TABLE; tables: {there}"

    def tables(self) -> list[Table]:
        """The tables that exist."""
        return [table for table in ALL.values() if (self.layout.table(table.layer, table.name) / "_delta_log").is_dir()]

    @property
    def _open(self) -> "duckdb.DuckDBPyConnection":
        assert self._connection is not None, "use a Lake with `with`"
        return self._connection

    def _named_in(self, sql: str) -> list[Table]:
        words = set(re.findall(r"\w+", sql.lower()))
        return [table for table in self._all() if table.name in words]

    def _all(self) -> list[Table]:
        """The tables that exist, and the views over them."""
        there = self.tables()
        return there + [view.table for view in VIEWS.values() if view.over[0] in there]

    def _register(self, table: Table) -> None:
        """Make a table (or the view that completes it) known under its full name."""
        if table.full_name in self._registered:
            return
        self._registered.add(table.full_name)
        view = VIEWS.get(table.full_name)
        shown = (
            self._shown(table) if view is None else view.select({of.full_name: self._dataset(of) for of in view.over})
        )
        self._open.execute(f"CREATE VIEW {table.full_name} AS {shown}")

    def _shown(self, table: Table) -> str:
        raw = self._dataset(table)
        return f"FROM {raw}" if table not in (*WIDTHS, LATEST) else self._completed(table, raw)

    def _dataset(self, table: Table) -> str:
        """Register the files of a table's log; the name they have in DuckDB."""
        from deltalake import DeltaTable

        name = f"raw_{table.layer}_{table.name}"
        if name not in self._registered:
            self._registered.add(name)
            path = str(self.layout.table(table.layer, table.name))
            is_there = DeltaTable.is_deltatable(path)
            rows = DeltaTable(path).to_pyarrow_dataset() if is_there else table.schema.arrow().empty_table()
            self._open.register(name, rows)
        return name

    def _completed(self, table: Table, raw: str) -> str:
        values = self._dataset(VALUES)
        if table is LATEST:
            return LATEST_VIEW.format(folded=raw, samples=self._dataset(SAMPLES), values=values, mark=self._mark(table))
        return ROLLUP_VIEW.format(folded=raw, values=values, mark=self._mark(table), width=WIDTHS[table])

    def _mark(self, table: Table) -> int:
        """The last batch that is folded into a table."""
        from deltalake import DeltaTable

        checkpoint = self.layout.checkpoint_id(JOB)
        if not checkpoint.exists():
            return 1 << 62  # only the pipeline's own machine knows; what is folded is then all there is
        writer = Writer(JOB, read_record(checkpoint).id, 0)
        version = DeltaTable(str(self.layout.table(table.layer, table.name))).transaction_version(writer.app(table))
        return -1 if version is None else version


def cells(table: "pa.Table") -> Iterator[list[str]]:
    """Rows as text for a terminal: control characters escaped (SEC-045), nothing shown as an empty cell."""
    for row in table.to_pylist():
        yield [_cell(value) for value in row.values()]


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return printable(f"{value:%Y-%m-%d %H:%M:%S}" if hasattr(value, "hour") else str(value))


def printable(text: str) -> str:
    r"""Text without control characters: each stands as its escape.

    >>> printable("a\x1b[31m\n")
    'a\\x1b[31m\\n'
    """
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)

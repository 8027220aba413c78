"""Queries the lake with SQL: DuckDB reads the files that the Delta logs name, without Java or network (PIP-090).

Each table in a query is opened from its log, and DuckDB reads its files (`weft.pipeline.scan`). Roll-ups and last
values are folded about every minute; a query adds the rows of silver after the last fold, so an answer includes the last
batch. A query cannot write, load an extension, or open a file outside the lake.

The version of a table is chosen when it is first used, and kept for all queries of a `Lake`: so the two sides of a join
fit together, and so do a folded table and the rows that complete it. With `as_of` all tables are those of that instant. A
`fresh` lake also reads drained rows that are not in the tables yet (see `weft.pipeline.bridge`); `freshness` then says how
current each table is.
"""

import glob
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import date
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.digests import WITHOUT_A_COPY, proofs
from weft.pipeline.logdigests import log_proofs
from weft.pipeline.marks import app_version
from weft.pipeline.scan import MISSING, quoted, scan
from weft.pipeline.tables import ALL, LATEST, SAMPLES, VALUES, VIEWS, Table, there
from weft.pipeline.versions import AsOf, made_at, opened
from weft.pipeline.views.folded import LATEST_VIEW, ROLLUP_VIEW, WIDTHS
from weft.pipeline.views.recomputed import ANY, sources
from weft.pipeline.views.sketch import MACROS
from weft.pipeline.writer import Writer

if TYPE_CHECKING:
    import duckdb
    import pyarrow as pa
    from deltalake import DeltaTable

    from weft.pipeline.bridge.bridge import Bridge, Freshness

JOB: Final = "samples"
LAYERS: Final = ("gold", "silver", "bronze", "quarantine", "meta")
"""The order of layers in which a bare table name is looked up. A query can always name the layer."""
SETTINGS: Final[dict[str, str | bool | int | float | list[str]]] = {
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "threads": "2",
}

FOLDED: Final = (*WIDTHS, LATEST)
"""Tables that a view completes with the rows after their last fold."""
BATCH_ROWS: Final = 50_000  # in a batch of a result
SKETCH: Final = "sketch_"
"""The beginning of the names of all functions over sketches."""
HINTS: Final = "Candidate bindings"  # a hint in DuckDB's error text
WRITES: Final = "must be at the top level"
"""A part of DuckDB's error text if a WITH clause that is not the outermost contains a statement that writes."""

_QUALIFIED: Final = re.compile(r"(\w+)\s*\.\s*(\w+)")
_BARE: Final = re.compile(r"(?<![.\w])(\w+)")
_EXPLAIN: Final = re.compile(
    r"\s*explain\s+(?:analyze\b\s*)?(?:\(\s*(?:analyze|format)\b[\s\w,]*\)\s*)?", re.IGNORECASE
)
"""The beginning of an EXPLAIN, without comments: what a comment is only DuckDB decides."""
_WRITING: Final = re.compile(r"\b(?:copy|insert|update|delete|merge)\b", re.IGNORECASE)
_TABLES: Final = re.compile(r"\s*show\s+(all\s+)?tables\s*;?\s*", re.IGNORECASE)
_LISTING: Final = re.compile(r"^\s*show\b", re.IGNORECASE)
_NO_TABLE: Final = re.compile(r'Table with name "?(\w+)"? does not exist')
_NO_COLUMN: Final = re.compile("Referenced column .* not found|does not have a column named")
NEAREST: Final = 3  # tables suggested for a misspelt name
_UNQUOTED: Final = re.compile(
    r"""(?<!["'.\w])(at|(?<!group )(?<!order )(?<!partition )by|group(?!\s+(?:by|all)))(?!["'\w])""", re.IGNORECASE
)
"""Finds unquoted columns whose names are keywords of SQL."""


class Lake:
    """A lake that can be queried; use it with `with`. It keeps the version that a table has when it is first used."""

    def __init__(
        self, root: Path | str, as_of: AsOf | None = None, *, verify: bool = False, fresh: bool = False
    ) -> None:
        """`as_of`: a number, that version of every table in a query; or an instant, the state of all tables then.

        The rows that complete a folded table are of the same instant. A table that was made later counts as empty.
        UserError `no-lake` if there is none.

        `verify`: first read and verify every file of the tables in a query; UserError `damaged` or `unproved` if that
        fails. `fresh`: the answer includes drained rows that are not in the tables yet (PIP-102); no effect together
        with `as_of`.
        """
        self.layout, self.as_of, self.verify = Layout(root), as_of, verify
        self.fresh = fresh and as_of is None
        self._bridge: Bridge | None = None
        self._registered: set[str] = set()
        """Tables under their full names, and functions, that DuckDB knows."""
        self._sources: dict[str, str] = {}
        """Rows of tables that were read, as what stands behind FROM.

        They are text and not views, because DuckDB looks into every file each time that it meets a view of another one.
        """
        self._handles: dict[tuple[str, AsOf | None], DeltaTable | None] = {}
        self._connection: duckdb.DuckDBPyConnection | None = None
        if not self.layout.lake_json.exists():
            raise UserError("no-lake", f"there is no lake in {root}", "--lake DIR, or weft up with a root that drains")

    def __enter__(self) -> Self:
        import duckdb

        self._connection = duckdb.connect(":memory:", config=SETTINGS)
        for name, value in self._settings():
            self._connection.execute(f"SET {name} = {value}")
        if self.fresh:
            # imported only here: it takes a tenth of the time in which a query starts
            from weft.pipeline.bridge.bridge import Bridge

            self._bridge = Bridge(self.layout, self._connection, self)
        for layer in LAYERS:
            self._connection.execute(f"CREATE SCHEMA {layer}")
        self._connection.execute(f"SET search_path = '{','.join(LAYERS)}'")
        self._connection.execute(
            "SET lock_configuration = true"
        )  # some table functions change settings, and write files
        return self

    def _settings(self) -> "Iterator[tuple[str, str]]":
        """DuckDB's settings, in order: after the last one no setting can be changed."""
        yield "TimeZone", quoted("UTC")
        yield "parquet_metadata_cache", "true"  # a query may read a file more than once
        directories = [self.layout.tables().resolve()]
        directories += [self.layout.root.resolve() / "drain"] if self.fresh else []
        allowed = [quoted(form(str(directory))) for directory in directories for form in (str, glob.escape)]
        yield "allowed_directories", f"[{', '.join(allowed)}]"
        yield "enable_external_access", "false"

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def query(self, sql: str, limit: int | None = None) -> "pa.Table":
        """The rows of one SELECT, at most `limit`.

        UserError `bad-sql` names the mistake and the tables; `no-version`: a table has no such version; `no-files`: files
        of that version were deleted; `storage-failed`: a file cannot be read.
        """
        with self._asking(sql):
            answer = self._relation(sql).to_arrow_table()
        return answer if limit is None else answer.slice(0, limit)

    def batches(self, sql: str) -> "Iterator[pa.RecordBatch | pa.Schema]":
        """The schema of one SELECT, then its rows batch by batch, for results larger than memory. Errors as `query`."""
        with self._asking(sql):
            reader = self._relation(sql).to_arrow_reader(BATCH_ROWS)
            yield reader.schema
            yield from reader

    def _relation(self, sql: str) -> "duckdb.DuckDBPyRelation":
        connection = self._open
        if _TABLES.fullmatch(sql):
            return self._listing()
        if _LISTING.search(sql):
            raise UserError(
                "bad-sql", "SHOW TABLES is the only SHOW that a lake answers", "SHOW TABLES, or DESCRIBE TABLE"
            )
        self._define_sketches(sql)
        for table in self._named_in(sql):
            self._register(table)
        (statement,) = connection.extract_statements(sql)
        if _writes(connection, statement):
            raise UserError("bad-sql", "a query cannot change a lake", "SELECT, WITH, DESCRIBE or EXPLAIN")
        return connection.sql(sql)

    def _listing(self) -> "duckdb.DuckDBPyRelation":
        """The answer to `SHOW TABLES`."""
        import pyarrow as pa

        known = sorted(self.known(), key=lambda table: table.full_name)
        rows = {"table": [table.full_name for table in known], "what": [table.grain for table in known]}
        return self._open.from_arrow(pa.table(rows, schema=pa.schema({name: pa.string() for name in rows})))

    @contextmanager
    def _asking(self, sql: str) -> Iterator[None]:
        """Translates errors of DuckDB into errors of this program."""
        import duckdb

        try:
            yield
        except ValueError:
            raise UserError("bad-sql", "a query must be exactly one statement", "weft sql 'SELECT …'") from None
        except duckdb.Error as error:
            why, *more = str(error).splitlines()
            why = " ".join((why, *(line for line in more if line.startswith(HINTS))))
            if any(word in str(error) for word in MISSING):
                mend = "ask for a later instant; [lake.keep] unreferenced says for how many days old files stay"
                raise UserError("no-files", f"files of a table were deleted: {why}", mend) from None
            if isinstance(error, duckdb.IOException):
                raise UserError("storage-failed", why, "weft lake check --deep, which names all such files") from None
            is_grammar = isinstance(error, duckdb.ParserException)
            raise UserError("bad-sql", why, self._mend(sql, why, is_grammar=is_grammar)) from None

    def _mend(self, sql: str, why: str, *, is_grammar: bool) -> str:
        """What to try instead of a query that DuckDB does not understand."""
        if is_grammar and (word := _UNQUOTED.search(sql)):
            return f'{word[1]} is also a word of SQL: write "{word[1]}" in double quotes'
        known = {table.full_name for table in self.known()}
        for view in VIEWS.values():
            if view.table.full_name not in known and view.table.name in _BARE.findall(sql):
                source = view.over[0].full_name
                return f"weft lake run --lake {self.layout.root}; it makes {source}, from which {view.table.full_name} is computed"
        missing = _NO_TABLE.search(why)
        if missing and (
            unmade := [name for name, table in ALL.items() if table.name == missing[1] and name not in known]
        ):
            return f"weft lake run --lake {self.layout.root} makes {unmade[0]}, which is not there yet"
        if missing and known:
            return f"{', '.join(_nearest(missing[1], known))}; SHOW TABLES lists all"
        if _NO_COLUMN.search(why) and (named := self._named_in(sql)):
            return "; ".join(f"{table.full_name} has {', '.join(table.schema.names)}" for table in named)
        return f"weft lake schema TABLE; tables: {', '.join(sorted(known)) or 'none yet: weft lake run makes them'}"

    def tables(self) -> list[Table]:
        """The tables that exist."""
        return there(self.layout)

    @property
    def _open(self) -> "duckdb.DuckDBPyConnection":
        assert self._connection is not None, "use a Lake with `with`"
        return self._connection

    def known(self) -> list[Table]:
        """The tables that exist, and the views over them."""
        there = self.tables()
        if self._bridge is not None:
            there += [table for table in self._bridge.known() if table not in there]
        return there + [view.table for view in VIEWS.values() if view.over[0] in there]

    def freshness(self) -> "list[Freshness]":
        """How current each table is that was used so far; empty for a lake that is not `fresh`."""
        return [] if self._bridge is None else list(self._bridge.freshness.values())

    def _named_in(self, sql: str) -> list[Table]:
        """The tables that a query may mean: `layer.name`, or for a bare name the first layer that has it."""
        known, text = {table.full_name: table for table in self.known()}, sql.lower().replace('"', "")
        named = {f"{layer}.{name}" for layer, name in _QUALIFIED.findall(text)}
        for name in set(_BARE.findall(text)):
            named.add(next((full for layer in LAYERS if (full := f"{layer}.{name}") in known), name))
        return [known[name] for name in sorted(named) if name in known]

    def _register(self, table: Table) -> None:
        """Register a table (or the view that completes it) in DuckDB under its full name."""
        if table.full_name in self._registered:
            return
        self._registered.add(table.full_name)
        select = self._select(table)
        self._define_sketches(select)
        self._open.execute(f"CREATE VIEW {table.full_name} AS {select}")

    def _define_sketches(self, sql: str) -> None:
        """Define the functions over sketches, but only if the query names one: that takes longer than a small query."""
        if SKETCH in sql.lower() and SKETCH not in self._registered:
            self._registered.add(SKETCH)
            for macro in MACROS:
                self._open.execute(f"CREATE MACRO {macro}")

    def _select(self, table: Table) -> str:
        """The SELECT of the rows that a query sees under the name of a table or view."""
        view = VIEWS.get(table.full_name)
        if view is None:
            return self._completed(table) if table in FOLDED else f"FROM {self._dataset(table, self.as_of)}"
        if isinstance(self.as_of, int):
            raise UserError("no-version", f"{table.full_name} is a view: it has no versions", "--as-of TIME")
        return view.select({of.full_name: self._of_view(of) for of in view.over})

    def _of_view(self, table: Table) -> str:
        """The rows of a table for a view; for a folded table including those that complete it."""
        return f"({self._completed(table)})" if table in FOLDED else self._dataset(table, self.as_of)

    def _dataset(self, table: Table, wish: AsOf | None) -> str:
        """The rows of a table, with pending ones if the lake is fresh, as what stands behind FROM."""
        if self._bridge is None or table in FOLDED:
            return self._rows(table, wish)
        name, pending = f"now_{table.layer}_{table.name}", self._bridge.select(table)
        if pending is None:
            return self._rows(table, wish)
        if name not in self._sources:
            self._sources[name] = f"(FROM {self._rows(table, wish)} UNION ALL BY NAME {pending})"
        return self._sources[name]

    def _rows(self, table: Table, wish: AsOf | None) -> str:
        """The committed rows of a table, as what stands behind FROM."""
        name = f"raw_{table.layer}_{table.name}"
        if wish != self.as_of:
            name += "_then"
        if name not in self._sources:
            handle = self._handle(table, wish)
            if handle is None:
                self._open.register(name, table.schema.arrow().empty_table())
                self._sources[name] = name
            else:
                if self.verify:
                    self._prove(table, handle)
                self._sources[name] = f"({scan(self._open, handle)})"
        return self._sources[name]

    def pending(self, table: Table, since: date | None = None) -> "pa.Table | None":
        """For a fresh lake: drained rows that the version of `handle` lacks; None if there are none. `since`: first UTC day."""
        assert self._bridge is not None, "only for a fresh lake"
        rows = self._bridge.select(table)
        if rows is None:
            return None
        where = "" if since is None else f" WHERE {table.partition} >= DATE '{since.isoformat()}'"
        return self._open.sql(f"FROM ({rows}){where}").to_arrow_table()

    # Called by the bridge.

    def handle(self, table: Table) -> "DeltaTable | None":
        """The version of a table that is read; None if the table does not exist."""
        return self._handle(table, None)

    def reopen(self, table: Table) -> None:
        """Read the newest version of a table that has not been queried yet."""
        assert f"raw_{table.layer}_{table.name}" not in self._sources, table.full_name
        self._handles.pop((table.full_name, None), None)

    def committed(self, table: Table) -> str:
        """The committed rows of a table, as what stands behind FROM."""
        return self._rows(table, None)

    def _prove(self, table: Table, handle: "DeltaTable") -> None:
        """Verify with their digests every file that the answer may use, and the table's log (FLD-030)."""
        for proof in chain(proofs(self.layout, table, handle), log_proofs(self.layout, table)):
            if proof.fault == "unproved":
                mend = "weft lake check --deep --adopt, or ask without --verify"
                raise UserError("unproved", f"{table.full_name}: {proof.path} has no digest", mend)
            if proof.fault:
                mend = f"weft lake check --deep; {WITHOUT_A_COPY}"
                raise UserError("damaged", f"{table.full_name}: {proof.path} is {proof.fault}", mend)

    def _handle(self, table: Table, wish: AsOf | None) -> "DeltaTable | None":
        """The table at the chosen version, the same at each call; None if it does not exist."""
        key = (table.full_name, wish)
        if key not in self._handles:
            self._handles[key] = opened(self._path(table), table.full_name, wish)
        return self._handles[key]

    def _path(self, table: Table) -> Path:
        return self.layout.table(table.layer, table.name)

    def _completed(self, table: Table) -> str:
        """The SELECT of a folded table and the rows after its last fold, of the wanted version and of the same instant."""
        raw, wish = self._dataset(table, self.as_of), self.as_of
        if isinstance(wish, int):
            wish = made_at(self._path(table), wish)
        values = self._dataset(VALUES, wish)
        if table is LATEST:
            samples = self._dataset(SAMPLES, wish)
            return LATEST_VIEW.format(folded=raw, samples=samples, values=values, mark=self._mark(table))
        mark = self._mark(table)
        if _has_datasets(self._handle(VALUES, wish), mark):
            raw, values = sources(raw, values, mark)
        return ROLLUP_VIEW.format(folded=raw, values=values, mark=mark, width=WIDTHS[table])

    def _mark(self, table: Table) -> int:
        """The last batch that is folded into a table, in the version that is read."""
        from weft.pipeline.checkpoint import read_record  # imports half of the pipeline, which most queries do not need

        checkpoint = self.layout.checkpoint_id(JOB)
        if not checkpoint.exists():
            return 1 << 62  # without the checkpoint nobody knows the mark: show folded rows only
        writer = Writer(JOB, read_record(checkpoint).id, 0)
        handle = self._handle(table, self.as_of)
        version = None if handle is None else app_version(handle, writer.app(table))
        return -1 if version is None else version


def _writes(connection: "duckdb.DuckDBPyConnection", statement: "duckdb.Statement") -> bool:
    """Whether a statement writes: WITH may contain a COPY, and EXPLAIN ANALYZE executes whatever it explains.

    DESCRIBE executes nothing, and accepts exactly the statements that only read.
    """
    import duckdb

    text = statement.query
    if statement.type == duckdb.StatementType.EXPLAIN:
        text = _EXPLAIN.sub("", text, count=1)
    elif statement.type != duckdb.StatementType.SELECT:
        return True
    elif not _WRITING.search(text):
        return False  # most queries: DESCRIBE would open their files once more
    try:
        connection.execute(f"DESCRIBE {text}").fetchall()
    except duckdb.ParserException:
        return True
    except duckdb.BinderException as error:
        if WRITES in str(error):
            return True
        raise
    return False


def _nearest(word: str, names: Iterable[str]) -> list[str]:
    """The full names whose last part is most similar to a word."""
    from difflib import SequenceMatcher

    return sorted(names, key=lambda name: -SequenceMatcher(None, word, name.partition(".")[2]).ratio())[:NEAREST]


def _has_datasets(values: "DeltaTable | None", mark: int) -> bool:
    """Whether there may be values of a dataset after the batch `mark`, according to the log (PIP-099)."""
    if values is None or "dataset" not in [field.name for field in values.schema().fields]:
        return False
    return bool(values.file_uris(file_pruning_predicate=ANY.format(mark=mark)))

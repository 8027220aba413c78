"""Rules of a lake's owner: data that decides over rows, looked at before the first row comes (PIP-034).

`[[lake.rule]]` of `lake.toml` names a stream and says, in Spark SQL over the columns of its bronze, which rows are to be
kept aside or marked. A rule is refused at the start of a driver if its text cannot be parsed, names an unknown column, is
neither true nor false, or could say something else of the same row tomorrow: chance, clocks, who asks, other tables, and
functions that run foreign code.

A row never fails a batch. A rule that cannot be computed for a row (a division by zero, a text that is no number) does
not apply to it; so rules are the one place where Spark's ANSI mode is off (`lenient`).
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from weft.base.errors import UserError
from weft.lake.layout import is_name
from weft.pipeline.ruleset import Rule, Rules
from weft.pipeline.settings import FILE, LakeTable
from weft.pipeline.tables import STAGES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ANSI: Final = "spark.sql.ansi.enabled"
TALKATIVE: Final = "SQLQueryContextLogger"
TEXT_MAX: Final = 4_096  # characters of a rule
INCONSTANT: Final = frozenset(
    {
        "CurrentTimestamp", "Now", "LocalTimestamp", "CurrentDate", "CurrentTime", "CurrentBatchTimestamp",
        "CurrentUser", "CurrentTimeZone", "CurrentDatabase", "CurrentCatalog",
        "ScalarSubquery", "Exists", "InSubquery", "ListQuery", "PythonUDF", "ScalaUDF", "Invoke", "HiveSimpleUDF",
    }
)  # fmt: skip
"""Spark's expressions that it calls deterministic and that say something else tomorrow, or read what is no row."""


def rules_of(settings: LakeTable) -> Rules:
    """The rules that a lake's file names. UserError `bad-rule` for one that cannot be meant, whatever it says."""
    seen: set[tuple[str, str]] = set()
    for rule in settings.rule:
        if rule.stream not in STAGES:
            raise _refused(rule.name, f"there is no stream {rule.stream!r}", ", ".join(STAGES))
        if rule.then == "flag" and rule.stream != "samples":
            raise _refused(rule.name, "only samples carry flags", 'then = "quarantine"')
        if not is_name(rule.name) or (rule.stream, rule.name) in seen:
            raise _refused(rule.name, "two rules have this name, or it is none", "letters, digits and hyphens")
        if len(rule.when) > TEXT_MAX:
            raise _refused(rule.name, f"it is longer than {TEXT_MAX} characters", "several rules")
        seen.add((rule.stream, rule.name))
    return Rules(
        tuple(Rule(rule.name, rule.when, rule.then, rule.stream) for rule in settings.rule), settings.known_nodes
    )


def verify(spark: "SparkSession", rules: Rules) -> None:
    """Have Spark read every rule against the columns of its stream; no row is touched. UserError `bad-rule`."""
    logging.getLogger(TALKATIVE).disabled = True  # what is wrong is said once, in one sentence
    with lenient(spark):
        for rule in rules.user:
            _look_at(spark, rule)


@contextmanager
def lenient(spark: "SparkSession") -> Iterator[None]:
    """Expressions that are resolved in here are null where ANSI would fail."""
    spark.conf.set(ANSI, "false")
    try:
        yield
    finally:
        spark.conf.set(ANSI, "true")


def _look_at(spark: "SparkSession", rule: Rule) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    bronze = STAGES[rule.stream].bronze
    rows = spark.createDataFrame([], bronze.spark())
    try:
        chosen = rows.where(F.expr(rule.when))
        chosen.schema  # noqa: B018  # resolves it, on a server, too
    except PySparkException as error:
        said = next((line for line in str(error).splitlines() if line), "").partition(" SQLSTATE")[0][:300]
        raise _refused(rule.name, said, f"weft lake schema {bronze.full_name} has the columns") from None
    if why := _fickle(chosen):
        raise _refused(rule.name, f"{why} may say something else of the same row tomorrow", "a rule over columns alone")


def _fickle(chosen: "DataFrame") -> str:
    """What in a condition depends on more than its row; empty: nothing."""
    if not hasattr(chosen, "_jdf"):
        return ""  # a server keeps its expressions to itself
    condition = chosen._jdf.queryExecution().analyzed().condition()
    if not condition.deterministic():
        return str(condition.sql())
    return next((name for name in _names(condition) if name in INCONSTANT), "")


def _names(expression: Any) -> Iterator[str]:
    """Names of the classes of an expression and all below it."""
    yield str(expression.getClass().getSimpleName())
    children = expression.children()
    for place in range(children.size()):
        yield from _names(children.apply(place))


def _refused(name: str, why: str, mend: str) -> UserError:
    return UserError("bad-rule", f"{FILE}: rule {name!r}: {why}", mend)

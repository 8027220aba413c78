"""Rules of a lake's owner that refuse or flag rows; they are checked before the first row is read (PIP-034).

`[[lake.rule]]` in `lake.toml` names a stream, and a Spark SQL expression over the columns of its bronze selects the
rows to quarantine or flag. A driver refuses a rule at its start if the text cannot be parsed, names an unknown column,
is not boolean, or could give another result for the same row later: random numbers, clocks, the current user, other
tables, functions that run foreign code. No row can fail a batch. A rule that cannot be computed for a row (a division
by zero, a text that is no number) does not apply to it; so rules are the one place where Spark's ANSI mode is off
(`lenient`).
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
TEXT_MAX: Final = 4_096  # characters in a rule's expression
INCONSTANT: Final = frozenset(
    {
        "CurrentTimestamp", "Now", "LocalTimestamp", "CurrentDate", "CurrentTime", "CurrentBatchTimestamp",
        "CurrentUser", "CurrentTimeZone", "CurrentDatabase", "CurrentCatalog",
        "ScalarSubquery", "Exists", "InSubquery", "ListQuery", "PythonUDF", "ScalaUDF", "Invoke", "HiveSimpleUDF",
    }
)  # fmt: skip
"""Expressions that Spark calls deterministic although their result changes, or depends on more than the row."""


def rules_of(settings: LakeTable) -> Rules:
    """The rules in a lake's file. UserError `bad-rule` for one that is invalid in any lake."""
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
    """Let Spark check every rule against the columns of its stream; reads no row. UserError `bad-rule`."""
    logging.getLogger(TALKATIVE).disabled = True  # the error is reported in one sentence, without the cause
    with lenient(spark):
        for rule in rules.user:
            _look_at(spark, rule)


@contextmanager
def lenient(spark: "SparkSession") -> Iterator[None]:
    """Expressions resolved inside this context are null where ANSI mode would fail."""
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
        chosen.schema  # noqa: B018  # resolves it, also on a server
    except PySparkException as error:
        said = next((line for line in str(error).splitlines() if line), "").partition(" SQLSTATE")[0][:300]
        raise _refused(rule.name, said, f"weft lake schema {bronze.full_name} has the columns") from None
    if why := _fickle(chosen):
        raise _refused(rule.name, f"{why} may say something else of the same row tomorrow", "a rule over columns alone")


def _fickle(chosen: "DataFrame") -> str:
    """What in a condition depends on more than its row; empty if nothing does."""
    if not hasattr(chosen, "_jdf"):
        return ""  # a server does not show its expressions
    condition = chosen._jdf.queryExecution().analyzed().condition()
    if not condition.deterministic():
        return str(condition.sql())
    return next((name for name in _names(condition) if name in INCONSTANT), "")


def _names(expression: Any) -> Iterator[str]:
    """Class names of an expression and all its children."""
    yield str(expression.getClass().getSimpleName())
    children = expression.children()
    for place in range(children.size()):
        yield from _names(children.apply(place))


def _refused(name: str, why: str, mend: str) -> UserError:
    return UserError("bad-rule", f"{FILE}: rule {name!r}: {why}", mend)

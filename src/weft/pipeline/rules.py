"""The user's rules that refuse or flag rows; they are checked before the first row is read (PIP-034).

`[[lake.rule]]` in `lake.toml` names a stream, and a Spark SQL expression over the columns of its bronze selects the
rows to quarantine or flag. A driver refuses a rule at its start if the text cannot be parsed, names an unknown column,
is not boolean, or could give another result for the same row later: random numbers, clocks, the current user, other
tables, functions that run foreign code. No row can fail a batch. A rule that cannot be computed for a row (a division
by zero, a text that is not a number) does not apply to it. For that, Spark's ANSI mode is off for rules, and only for
them (`lenient`).
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
CONTEXT_LOGGER: Final = "SQLQueryContextLogger"
"""PySpark's logger, which prints an error of Spark with its whole cause."""
TEXT_MAX: Final = 4_096  # characters in a rule's expression
VARIABLE: Final = frozenset(
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
            raise _refused(rule.name, f"there is no stream {rule.stream!r}", f"one of {', '.join(STAGES)}")
        if rule.then == "flag" and rule.stream != "samples":
            raise _refused(rule.name, "only samples carry flags", 'then = "quarantine"')
        if not is_name(rule.name) or (rule.stream, rule.name) in seen:
            raise _refused(
                rule.name,
                "two rules have this name, or it is not a name",
                "another one, of letters, digits and hyphens",
            )
        if len(rule.when) > TEXT_MAX:
            raise _refused(rule.name, f"it is longer than {TEXT_MAX} characters", "divide it into several rules")
        seen.add((rule.stream, rule.name))
    return Rules(
        tuple(Rule(rule.name, rule.when, rule.then, rule.stream) for rule in settings.rule), settings.known_nodes
    )


def verify(spark: "SparkSession", rules: Rules) -> None:
    """Let Spark check every rule against the columns of its stream; reads no row. UserError `bad-rule`."""
    logging.getLogger(CONTEXT_LOGGER).disabled = True  # `_verify` reports the error in one sentence
    with lenient(spark):
        for rule in rules.user:
            _verify(spark, rule)


@contextmanager
def lenient(spark: "SparkSession") -> Iterator[None]:
    """Expressions resolved inside this context are null where ANSI mode would fail."""
    spark.conf.set(ANSI, "false")
    try:
        yield
    finally:
        spark.conf.set(ANSI, "true")


def _verify(spark: "SparkSession", rule: Rule) -> None:
    from pyspark.errors import PySparkException
    from pyspark.sql import functions as F

    bronze = STAGES[rule.stream].bronze
    rows = spark.createDataFrame([], bronze.spark())
    try:
        chosen = rows.where(F.expr(rule.when))
        chosen.schema  # noqa: B018  # resolves it, also on a server
    except PySparkException as error:
        first = next((line for line in str(error).splitlines() if line), "").partition(" SQLSTATE")[0][:300]
        raise _refused(rule.name, first, f"weft lake schema {bronze.full_name} lists the columns") from None
    if why := _variable_part(chosen):
        raise _refused(
            rule.name,
            f"{why} may give another result for the same row later",
            "a rule that uses only columns of the row",
        )


def _variable_part(chosen: "DataFrame") -> str:
    """The part of a condition that depends on more than its row; empty if there is none."""
    if not hasattr(chosen, "_jdf"):
        return ""  # a server of Spark Connect does not show its expressions
    condition = chosen._jdf.queryExecution().analyzed().condition()
    if not condition.deterministic():
        return str(condition.sql())
    return next((name for name in _names(condition) if name in VARIABLE), "")


def _names(expression: Any) -> Iterator[str]:
    """Class names of an expression and all its children."""
    yield str(expression.getClass().getSimpleName())
    children = expression.children()
    for place in range(children.size()):
        yield from _names(children.apply(place))


def _refused(name: str, why: str, mend: str) -> UserError:
    return UserError("bad-rule", f"{FILE}: rule {name!r}: {why}", mend)

"""Rules of a lake's owner: refused at the start if they cannot hold, and harmless to rows they cannot be computed for."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.pipeline.ground import MEM, NET, A, Ground, taken
from weft.base.errors import UserError
from weft.lake.layout import Layout
from weft.pipeline.rules import rules_of, verify
from weft.pipeline.ruleset import Rule, Rules
from weft.pipeline.runner import Runner
from weft.pipeline.settings import settings_of

FILE = """
[lake]
known_nodes = ["a"]
[[lake.rule]]
name = "hot"
when = "value_long > 90"
[[lake.rule]]
name = "hot"
stream = "events"
when = "key = 'x'"
"""


def written(lake: Path, text: str) -> Rules:
    lake.mkdir(exist_ok=True)
    (lake / "lake.toml").write_text(text, "utf-8")
    return rules_of(settings_of(Layout(lake)))


def test_a_file_becomes_rules(tmp_path: Path) -> None:
    hot, other = Rule("hot", "value_long > 90"), Rule("hot", "key = 'x'", "quarantine", "events")
    assert Rules((hot, other), ("a",)) == written(tmp_path, FILE)
    assert Rules() == rules_of(settings_of(Layout(tmp_path / "no file there")))


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ('name = "a b"\nwhen = "true"', "or it is not a name"),
        ('name = "hot"\nwhen = "true"', "two rules have this name"),
        ('name = "x"\nwhen = "true"\nstream = "sample"', "there is no stream 'sample'"),
        ('name = "x"\nwhen = "true"\nstream = "events"\nthen = "flag"', "only samples carry flags"),
        (f'name = "x"\nwhen = "{"a" * 5_000}"', "longer than 4096"),
        ('name = "x"\nwhen = "true"\nthen = "drop"', "Invalid enum value 'drop'"),
        ('name = "x"\nwhen = "true"\nwhere = 1', "unknown field `where`"),
    ],
)
def test_a_rule_that_cannot_be_meant_is_refused_without_spark(tmp_path: Path, lines: str, told: str) -> None:
    with pytest.raises(UserError, match=told) as refused:
        written(tmp_path, f"{FILE}[[lake.rule]]\n{lines}\n")
    assert refused.value.code in ("bad-rule", "bad-settings")


REFUSED = {
    "value_long >": "[Ss]yntax|PARSE",
    "nope > 1": "`nope` cannot be resolved",
    "value_long": "FILTER_NOT_BOOLEAN",
    "sum(value_long) > 1": "invalid expressions: sum",
    "row_number() over (order by lsn) = 1": "WINDOW_FUNCTION",
    "rand() > 0.5": "for the same row later",
    "uuid() = 'a'": "for the same row later",
    "at_ns > 1000000000 * unix_timestamp()": "CurrentTimestamp may give another result",
    "current_date() > '2026-01-01'": "CurrentDate may give",
    "current_user() = 'joe'": "CurrentUser may give",
    "value_long > (select max(id) from range(3))": "ScalarSubquery may give",
    "reflect('java.lang.Math', 'abs', 1) = '1'": "for the same row later",
    "input_file_name() = 'a'": "for the same row later",
}


@pytest.mark.proves("PIP-034")
def test_spark_reads_every_rule_before_the_first_row(spark: SparkSession, tmp_path: Path) -> None:
    for when, told in REFUSED.items():
        with pytest.raises(UserError, match=told) as refused:
            verify(spark, Rules((Rule("mine", when),)))
        assert "bad-rule" == refused.value.code
        assert "lake.toml: rule 'mine': " in str(refused.value)
        assert 2 == len(str(refused.value).splitlines()), "one sentence and its mend"
    sound = ("labels['cpu'] = 'total'", "value_long / base_long > 2", "exists(map_keys(labels), k -> k like 'x%')")
    verify(
        spark, Rules((*(Rule(f"r{n}", when) for n, when in enumerate(sound)), Rule("e", "key = 'x'", stream="events")))
    )
    with pytest.raises(UserError, match="`value_long` cannot be resolved"):
        verify(spark, Rules((Rule("e", "value_long > 1", stream="events"),)))
    assert "true" == spark.conf.get("spark.sql.ansi.enabled")
    runner = Runner(Layout(tmp_path), lambda _: None)
    runner.options = runner.options._replace(rules=Rules((Rule("mine", "rand() > 0.5"),)))
    with pytest.raises(UserError, match="for the same row later"):
        runner._run(spark, 1, once=True)


@pytest.mark.proves("PIP-032", "PIP-034")
def test_a_row_for_which_a_rule_cannot_be_computed_is_not_refused_by_it(ground: Ground) -> None:
    ratio, text = Rule("ratio", "value_long / base_long > 2"), Rule("text", "cast(detail as int) > 3", "flag")
    ground.restart(ground.options._replace(rules=Rules((ratio, text, Rule("low", "value_long < 3", "flag")))))
    done = ground.take(taken(1, [(MEM, 9, 0), (MEM, 9, 3), (NET, 2, None), (MEM, 2, 2)]))
    assert (4, 3, 0, 1) == done.outcome[:4]
    assert [(2, "rule:ratio")] == ground.rows("quarantine.samples", "sequence", "reason")
    assert [(1, []), (3, ["rule:low"]), (4, ["rule:low"])] == ground.rows("silver.samples", "sequence", "flags")
    ground.restart(ground.options._replace(rules=Rules()))
    assert (1, 1, 0, 0) == ground.take(taken(5, [(MEM, 9, 3)])).outcome[:4]
    assert {A} == {origin for (origin,) in ground.rows("bronze.samples", "origin")}

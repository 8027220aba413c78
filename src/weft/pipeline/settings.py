"""The settings of a lake's pipeline: the file `lake.toml` in the lake (`[lake]`), read when a command starts.

Every setting is optional. An unknown setting or invalid value is refused, with its place in the file.
"""

from pathlib import Path
from typing import Annotated, Final, Literal

import msgspec
from msgspec import Meta

from weft.base.errors import UserError
from weft.lake.layout import Layout

FILE: Final = "lake.toml"
DAYS_MAX: Final = 100_000  # counted back from today, this is still a valid date
Days = Annotated[int, Meta(ge=0, le=DAYS_MAX)]
"""Days; 0: for ever."""
RULES_MAX: Final = 200
MUTES_MAX: Final = 1_000


class RuleTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[lake.rule]]`: rows to quarantine or flag (PIP-034)."""

    name: str
    when: str
    """A Spark SQL expression over the columns of bronze; true: the rule applies."""
    stream: str = "samples"
    then: Literal["quarantine", "flag"] = "quarantine"


class MuteTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[[lake.mute]]`: series whose anomalies are not reported (PIP-055). An omitted field matches everything."""

    node: str = ""
    config_name: str = ""
    labels: dict[str, str] = {}
    kind: str = ""


class KeepTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[lake.keep]`: for how many days rows of a layer are kept (LAK-037)."""

    bronze: Days = 30
    silver: Days = 400
    gold: Days = 0
    quarantine: Days = 400
    unreferenced: Annotated[int, Meta(ge=1, le=DAYS_MAX)] = 7
    """Days for files that no version of a table names any more."""


class LakeTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[lake]`."""

    spark: dict[str, str | int | float | bool] = {}
    """Spark's own settings; a setting that would break a promise is refused (PIP-081)."""
    rule: Annotated[tuple[RuleTable, ...], Meta(max_length=RULES_MAX)] = ()
    mute: Annotated[tuple[MuteTable, ...], Meta(max_length=MUTES_MAX)] = ()
    keep: KeepTable = KeepTable()
    known_nodes: tuple[str, ...] | None = None
    """Origins that may send; null: all may."""

    @property
    def spark_texts(self) -> dict[str, str]:
        """Spark's settings as text, as Spark reads them.

        >>> LakeTable(spark={"spark.a": True, "spark.b": 4}).spark_texts
        {'spark.a': 'true', 'spark.b': '4'}
        """
        return {
            name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in self.spark.items()
        }


class _File(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    lake: LakeTable = LakeTable()


def settings_of(layout: Layout, file: Path | None = None) -> LakeTable:
    """The settings from `lake.toml` of the lake, or from another file; defaults if there is none.

    UserError `bad-settings` names the file and the place.
    """
    path = file or layout.root / FILE
    if file is None and not path.exists():
        return LakeTable()
    try:
        return msgspec.toml.decode(path.read_bytes(), type=_File).lake
    except (OSError, msgspec.MsgspecError, ValueError) as error:
        raise UserError("bad-settings", f"{path}: {error}", "docs/lake.md lists all settings") from None

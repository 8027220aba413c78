"""The rules named by a ruleset: `MAR2014`, or with modifiers, `MAR2014/20p/30b/5f` (JAM-003, JAM-010)."""

import re
from typing import Final, NamedTuple

MODIFIER: Final = re.compile(r"(\d{1,4})([pbf])", re.ASCII)
FIELDS: Final = {"p": "period_minutes", "b": "box_s", "f": "penalties_max"}


class Rules(NamedTuple):
    """The numbers of a bout that its ruleset may override."""

    period_minutes: int = 30
    box_s: int = 30
    penalties_max: int = 7
    """A skater with this many penalties is out."""


JAM_S: Final = 120
LINEUP_S: Final = 30
TIMEOUTS: Final = 3  # of a team, in a bout


def rules_of(ruleset: str) -> Rules:
    """The rules of a ruleset string; unknown modifiers, and 0, are ignored.

    >>> rules_of("MAR2014/20p/5f")
    Rules(period_minutes=20, box_s=30, penalties_max=5)
    """
    changed = {}
    for part in ruleset.split("/")[1:]:
        found = MODIFIER.fullmatch(part.strip())
        if found and int(found[1]):
            changed[FIELDS[found[2]]] = int(found[1])
    return Rules(**changed)

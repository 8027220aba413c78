"""Pages of docs/ as they are typed: the commands of their consoles, and what they show below each."""

import re
from typing import Final, NamedTuple

from tests.house.requirements import ROOT

BLOCK: Final = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
TYPED: Final = re.compile(r"^\$ (.*)\n((?:[^$].*\n)*)", re.MULTILINE)


class Typed(NamedTuple):
    """A command, and the lines that a page shows below it."""

    command: str
    shown: list[str]

    def is_shown(self, said: str) -> bool:
        """Whether the page shows what was said; `…` stands for any text, alone in a line for any lines.

        A page that shows nothing shows everything.

        >>> Typed("date", ["12:… UTC"]).is_shown("12:30 UTC\\n"), Typed("date", ["12:… UTC"]).is_shown("13:30 UTC\\n")
        (True, False)
        """
        lines = ("(?s:.*)" if line == "…" else ".*".join(map(re.escape, line.split("…"))) for line in self.shown)
        pattern = r"\s*\n".join(lines)
        return not self.shown or re.fullmatch(pattern + r"\s*", said) is not None

    def is_like(self, said: str) -> bool:
        """The same, whatever numbers, times and widths of columns are.

        >>> Typed("date", ["12:30  UTC"]).is_like("13:45 UTC\\n"), Typed("date", ["12:30 UTC"]).is_like("13:45 CET\\n")
        (True, False)
        """
        return Typed(self.command, [plain(line) for line in self.shown]).is_shown(plain(said))


def plain(text: str) -> str:
    """Each number is 0, each space a single one."""
    return re.sub(r"[^\S\n]+", " ", re.sub(r"\d[\d,.:-]*", "0", text))


def consoles(page: str) -> list[list[Typed]]:
    """The commands of each console of a page, by its name."""
    text = (ROOT / "docs" / page).read_text("utf-8")
    return [[Typed(line, shown.splitlines()) for line, shown in TYPED.findall(block)] for block in BLOCK.findall(text)]

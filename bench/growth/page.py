"""The page of exponents: a section for each curve, kept until that curve is measured again, and a plot of all."""

import re
from typing import Final, NamedTuple
from xml.sax.saxutils import escape

from bench.growth.fit import Fit, Points, fit_of
from bench.quick import FONT, HIGH, LEFT, RIGHT, WIDTH

HEADER: Final = """\
# How work and memory grow

Written by `python -m bench.curves --write`, curve by curve: each section says when, how and under which load it was measured.
A cost is fitted to n ** exponent, by least squares of the logarithms; the *last step* is the exponent between the last two
sizes alone. 1 is linear, 0 does not grow. Costs of less than a millisecond or four megabytes are not fitted. Each size has a
process of its own, and the least of its rounds counts. `MORE` marks what grows faster than n log n by more than 0.1, which
is how much caches and noise add; what a protocol forces is explained below its table.

![The exponent of each cost, and that of the last step as the end of its line; the grey line is linear](growth.svg)
"""
ROW: Final = re.compile(
    r"^\| (?P<what>[^|]+?) \|.*\| (?P<exponent>-?[\d.]+) \| (?P<last>-?[\d.]+) \| [^|]*\|$", re.MULTILINE
)
SECTION: Final = re.compile(r"^## (\w+)\n.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)
LOWEST, HIGHEST = -0.5, 2.5


class Reasons(NamedTuple):
    """By cost, why it grows faster than n log n."""

    forced: dict[str, str] = {}
    """A protocol makes it so."""
    ours: dict[str, str] = {}
    """It could be otherwise, and is not yet."""


class Seen(NamedTuple):
    """What was measured of a curve."""

    name: str
    about: str
    """One paragraph."""
    how: str
    """Date, load, machine, command."""
    sizes: tuple[int, ...]
    costs: dict[str, Points]
    reasons: Reasons
    """Why costs grow faster than n log n."""


def section_of(seen: Seen) -> str:
    """Its table."""
    sizes = " | ".join(f"{size:,}" for size in seen.sizes)
    lines = [f"| {seen.name} | {sizes} | exponent | last step | |", f"|---|{'--:|' * (len(seen.sizes) + 2)}---|"]
    for what, points in seen.costs.items():
        fit = fit_of(what, points)
        shown = " | ".join(shown_cost(points[size]) if size in points else "" for size in seen.sizes)
        exponents = f"{fit.exponent:.2f} | {fit.last:.2f}" if fit else "- | -"
        lines.append(f"| {what} | {shown} | {exponents} | {word_of(what, fit, seen.reasons)} |")
    table = "\n".join(lines)
    return f"## {seen.name}\n\n{seen.about}\n\n{seen.how}\n\n{table}\n{_reasons_of(seen)}\n"


def shown_cost(cost: float) -> str:
    """Three digits, and all of a large one.

    >>> shown_cost(21_878.2), shown_cost(0.034567)
    ('21,878', '0.0346')
    """
    return f"{cost:,.0f}" if cost >= 1_000 else f"{cost:.3g}"


def _reasons_of(seen: Seen) -> str:
    """Each of them once."""
    said: dict[str, list[str]] = {}
    for head, why_of in zip(("Forced", "More"), seen.reasons, strict=True):
        for what, why in why_of.items():
            if what in seen.costs:
                said.setdefault(f"{head}: {why}", []).append(what)
    return "".join(f"\n{why} (*{'*, *'.join(whats)}*)\n" for why, whats in said.items())


def word_of(what: str, fit: Fit | None, reasons: Reasons) -> str:
    """What is to be noticed of a row."""
    if fit is None or not fit.is_more:
        return ""
    return "forced" if what in reasons.forced else "MORE"


def page_of(before: str, seen: list[Seen], order: list[str]) -> str:
    """The page with these sections anew; the others stay."""
    sections = {found[1]: found[0] for found in SECTION.finditer(before)}
    sections |= {each.name: section_of(each) for each in seen}
    return "\n".join([HEADER, *(sections[name].rstrip("\n") + "\n" for name in order if name in sections)])


def exponents_of(page: str) -> dict[str, tuple[float, float]]:
    """Exponent and last step of each row of a page, by section and cost."""
    return {
        f"{section[1]}: {row['what']}": (float(row["exponent"]), float(row["last"]))
        for section in SECTION.finditer(page)
        for row in ROW.finditer(section[0])
    }


def plot_of(rows: dict[str, tuple[float, float]]) -> str:
    """A dot for each exponent, with a line to that of the last step."""

    def at(exponent: float) -> float:
        within = min(max(exponent, LOWEST), HIGHEST)
        return LEFT + 120 + WIDTH * (within - LOWEST) / (HIGHEST - LOWEST)

    height = HIGH * (len(rows) + 2)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{LEFT + 120 + WIDTH + RIGHT}" height="{height}" {FONT}>',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for tick in (0.0, 0.5, 1.0, 1.5, 2.0):
        shade = "#333333" if tick == 1.0 else "#dddddd"
        drawn.append(f'<line x1="{at(tick):.1f}" x2="{at(tick):.1f}" y1="8" y2="{height - HIGH}" stroke="{shade}"/>')
        drawn.append(f'<text x="{at(tick):.1f}" y="{height - 6}" text-anchor="middle">{tick:g}</text>')
    for number, (what, (exponent, last)) in enumerate(rows.items()):
        y = HIGH * (number + 0.8)
        drawn.append(f'<text x="{LEFT + 110}" y="{y + 4:.1f}" text-anchor="end">{escape(what)}</text>')
        drawn.append(
            f'<line x1="{at(exponent):.1f}" x2="{at(last):.1f}" y1="{y:.1f}" y2="{y:.1f}" stroke="#1f77b4" stroke-width="3"/>'
        )
        drawn.append(
            f'<circle cx="{at(exponent):.1f}" cy="{y:.1f}" r="4" fill="#1f77b4"><title>{exponent:.2f}</title></circle>'
        )
    return "\n".join([*drawn, "</svg>\n"])

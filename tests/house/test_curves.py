"""The page of exponents: what grows faster than n log n is marked, and each curve is kept until it is measured again."""

from math import log
from xml.etree import ElementTree as ET

import pytest

from bench.growth.fit import Points, fit_of
from bench.growth.page import Reasons, Seen, exponents_of, page_of, plot_of, section_of

SIZES = (100, 1_000, 10_000)
LINEAR = {size: size / 1e3 for size in SIZES}
SQUARE = {size: size**2 / 1e6 for size in SIZES}


def seen(name: str, **costs: Points) -> Seen:
    rows = {f"{what}, CPU s": points for what, points in costs.items()}
    return Seen(name, "What is done.", "A day and a load.", SIZES, rows, Reasons())


@pytest.mark.parametrize(
    ("points", "exponent", "is_more"),
    [
        (dict.fromkeys(SIZES, 0.5), 0.0, False),
        (LINEAR, 1.0, False),
        ({size: size * log(size) / 1e3 for size in SIZES}, 1.15, False),
        (SQUARE, 2.0, True),
        ({100: 0.1, 1_000: 1.0, 10_000: 40.0}, 1.3, True),  # linear at first, and then no more
    ],
)
def test_what_grows_faster_than_n_log_n_in_all_or_at_last_is_more(
    points: Points, exponent: float, is_more: bool
) -> None:
    fit = fit_of("work, CPU s", points)
    assert fit is not None
    assert exponent == pytest.approx(fit.exponent, abs=0.02)
    assert is_more is fit.is_more


def test_costs_of_less_than_a_millisecond_or_four_megabytes_are_not_fitted() -> None:
    assert fit_of("work, CPU s", {100: 0.0001, 1_000: 0.0009, 10_000: 0.5}) is None
    assert fit_of("room, MB", {100: 0.3, 1_000: 3.9, 10_000: 5.0}) is None
    fit = fit_of("work, CPU s", {100: 0.0009, 1_000: 0.01, 10_000: 0.1})
    assert fit is not None
    assert 1.0 == pytest.approx(fit.exponent)


def test_what_a_protocol_forces_is_told_from_what_it_does_not() -> None:
    of_both = seen("keys", ours=SQUARE, theirs=SQUARE)
    section = section_of(
        of_both._replace(reasons=Reasons({"theirs, CPU s": "each tells each."}, {"ours, CPU s": "not yet."}))
    )
    assert "| ours, CPU s | 0.01 | 1 | 100 | 2.00 | 2.00 | MORE |" in section
    assert "| theirs, CPU s | 0.01 | 1 | 100 | 2.00 | 2.00 | forced |" in section
    assert "\nForced: each tells each. (*theirs, CPU s*)\n" in section
    assert "\nMore: not yet. (*ours, CPU s*)\n" in section


def test_a_curve_that_is_not_measured_stays_on_the_page_in_its_place() -> None:
    order = ["keys", "nodes", "services"]
    first = page_of("", [seen("services", beats=LINEAR), seen("keys", sets=SQUARE)], order)
    again = page_of(first, [seen("nodes", joins=LINEAR), seen("keys", sets=LINEAR)], order)
    assert [f"## {name}" for name in order] == [line for line in again.splitlines() if line.startswith("## ")]
    assert {
        "keys: sets, CPU s": (1.0, 1.0),
        "nodes: joins, CPU s": (1.0, 1.0),
        "services: beats, CPU s": (1.0, 1.0),
    } == exponents_of(again)
    assert again == page_of(again, [], order)


def test_the_plot_shows_each_exponent_right_of_the_line_if_it_is_more_than_linear() -> None:
    rows = exponents_of(page_of("", [seen("keys", gets=dict.fromkeys(SIZES, 1.0), sets=SQUARE)], ["keys"]))
    plot = ET.fromstring(plot_of(rows))
    dots = [float(each.attrib["cx"]) for each in plot.iter() if each.tag.endswith("circle")]
    (line,) = [float(each.attrib["x1"]) for each in plot.iter() if each.attrib.get("stroke") == "#333333"]
    assert dots[0] < line < dots[1]
    assert set(rows) <= {each.text for each in plot.iter() if each.tag.endswith("text")}

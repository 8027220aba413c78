"""Files of the original dCAMP: the same values, or a coded error (CFG-073)."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.base.settings import span_ns
from weft.node.cfgfile import parse_cfg, read_cfg
from weft.node.fleet import read_fleet
from weft.node.fleetkeys import to_pairs
from weft.node.fleettext import to_toml

LINES = (Path(__file__).parents[1] / "vectors" / "config-cfg.jsonl").read_text("utf-8").splitlines()
VECTORS = {vector["id"]: vector for vector in map(json.loads, LINES)}
DIFFERENT = {"cfg-capital-metric"}  # names keep their case, so a line may name a metric that has capitals
CODES = {
    "cfg-no-global": {"E03"},
    "cfg-extra-global": {"E02"},
    "cfg-no-group": {"E03"},
    "cfg-no-node": {"E10"},
    "cfg-port-overlap": {"E06"},
    "cfg-threshold-short": {"E11"},
    "cfg-bad-aggregate": {"E12"},
    "cfg-aggregate-and-threshold": {"E13"},
    "cfg-ipv6": {"E10", "E15"},
    "cfg-duplicate-section": {"E14"},
}
HEAD = "[global]\nheartbeat = 5s\n"
CPU = "[cpu]\nrate = 60s\nmetric = CPU\n"


def text_of(name: str) -> str:
    return bytes.fromhex(VECTORS[name]["payload"]).decode()


def as_original(text: str) -> dict[str, Any]:
    """The values that the original makes of a file, from what ours says."""
    cfg = parse_cfg(text)
    values: dict[str, Any] = {"/CONFIG/global/heartbeat": cfg.heartbeat_s}
    for name, group in cfg.groups.items():
        places = [endpoint.split(":") for endpoint in group.endpoints]
        values[f"/CONFIG/{name}/endpoints"] = [{"host": host.lower(), "port": int(port)} for host, port in places]
        values[f"/CONFIG/{name}/filters"] = [{"action": text[0], "match": text[1:]} for text in group.filters]
        values[f"/CONFIG/{name}/metrics"] = [original_metric(metric, cfg.metrics[metric]) for metric in group.metrics]
    return values


def original_metric(name: str, table: dict[str, Any]) -> dict[str, Any]:
    text = table.get("threshold")
    threshold = None
    if text:
        value = (span_ns(text[1:]) or 0) // 10**9 if text[0] in "*+" else float(text[1:])
        threshold = {"op": text[0], "value": value}
    rate = (span_ns(table["rate"]) or 0) // 10**9
    aggregate = table["aggregate"][0] if "aggregate" in table else None
    told = {"config_name": name, "rate": rate, "threshold": threshold, "detail": table["detail"]}
    return {**told, "param": table.get("param"), "aggr": aggregate}


@pytest.mark.proves("CFG-073")
@pytest.mark.parametrize("name", VECTORS)
def test_every_file_has_the_meaning_that_the_original_gave_it(name: str) -> None:
    means, reading = VECTORS[name]["means"], read_cfg(text_of(name))
    if means["ok"]:
        assert () == reading.errors
        assert means["values"] == as_original(text_of(name))
    elif name in DIFFERENT:
        assert () == reading.errors
    else:
        assert reading.fleet is None
        assert CODES[name] == {mistake.code for mistake in reading.errors}


@pytest.mark.proves("CFG-073")
@pytest.mark.parametrize("name", [name for name in VECTORS if VECTORS[name]["means"]["ok"]])
def test_a_file_becomes_toml_that_says_the_same(name: str) -> None:
    fleet = read_cfg(text_of(name)).fleet
    assert fleet is not None
    again = read_fleet(to_toml(fleet))
    assert () == again.errors
    assert again.fleet is not None
    assert to_pairs(fleet) == to_pairs(again.fleet)


@pytest.mark.proves("CFG-073")
def test_names_keep_their_case_and_filters_are_applied() -> None:
    fleet = read_cfg(f"{HEAD}[Web]\nWeb1.Lab:5000\n+.example.org\n-10.2.0.0/16\ncpu\n{CPU}").fleet
    assert fleet is not None
    group = fleet.groups["Web"]
    assert (("Web1.Lab:5000", "*.example.org"), ("10.2.0.0/16",)) == (group.members, group.exclude)


@pytest.mark.proves("CFG-073")
@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("host:1\n[global]\nheartbeat = 5s\n[g]\nhost:50\ncpu\n" + CPU, ("E01", 1)),
        ("[global]\nheartbeat = 5m\n[g]\nhost:50\ncpu\n" + CPU, ("E04", 2)),
        ("[global]\n[g]\nhost:50\ncpu\n" + CPU, ("E03", 1)),
        (HEAD + "[g]\nhost:50\ncpu\n[cpu]\nmetric = CPU\n", ("E03", 6)),
        (HEAD + "[g]\nhost:50\ncpu\n[cpu]\nrate = 5s\n", ("E03", 6)),
        (HEAD + "[g]\nhost:50\ncpu\n[cpu]\nrate = 5 minutes\nmetric = CPU\n", ("E04", 7)),
        (HEAD + "[g]\nhost:50\ncpu\n[cpu]\nrate = 5s\nmetric = CPUS\n", ("E07", 8)),
        (HEAD + "[g]\nhost:50\nhost:50\ncpu\n" + CPU, ("E14", 5)),
        (HEAD + "[g]\nhost:99999\ncpu\n" + CPU, ("E05", 4)),
        (HEAD + "[g]\nhost:50\ncqu\n" + CPU, ("E07", 5)),
        (HEAD + "[g]\n+.lab\ncpu\n" + CPU, ("E10", 3)),
        (HEAD + "[g]\nhost:50\n-a b\ncpu\n" + CPU, ("E05", 5)),
        (HEAD + "[root]\nhost:50\ncpu\n" + CPU, ("E15", 3)),
        (HEAD + "[g]\nhost:50\ncpu\n" + CPU + "aggregate = count\n", ("E12", 9)),
        (HEAD + "[g]\nhost:50\ncpu\n" + CPU + "threshold = >nan\n", ("E11", 9)),
        (HEAD + "[g]\nhost:50\n  cpu\n" + CPU, ("E01", 5)),
        (HEAD + "[g]\nhost:50\n= cpu\n" + CPU, ("E01", 5)),
        (HEAD + "[g]\nhost:50\n", ("E03", 1)),
    ],
)
def test_what_the_original_refused_or_died_of_has_a_code_and_a_line(text: str, told: tuple[str, int]) -> None:
    reading = read_cfg(text)
    assert reading.fleet is None
    assert told in [(mistake.code, mistake.line) for mistake in reading.errors]


@pytest.mark.proves("CFG-073")
def test_what_the_original_let_pass_is_let_pass() -> None:
    text = (
        "; old comment\n[DEFAULT]\n"  # an empty section of defaults says nothing
        "[global] of all\n  HeartBeat = 5s\n\n[g]\n  host:50\n  CPU\n[cpu]\nRate = 60 s\nMETRIC = CPU\nparam = x\n"
        "threshold = > .5\ncolour = blue\naggregate\n"
    )
    reading = read_cfg(text)
    assert () == reading.errors
    assert reading.fleet is not None
    expected = {"detail": "CPU", "rate": "60s", "threshold": ">0.5"}
    assert {"cpu": expected} == reading.fleet.groups["g"].metrics


@pytest.mark.proves("CFG-073")
@given(
    st.lists(
        st.sampled_from(["[g]", "[cpu]", "[global]", "rate = 5s", "metric=CPU", "a:5", " x", "=", "-", "+*", "[", "[]"])
        | st.text()
    )
)
def test_any_text_gives_a_fleet_or_its_mistakes(lines: list[str]) -> None:
    reading = read_cfg("\n".join(lines))
    assert (reading.fleet is None) == bool(reading.errors)

"""Fleets and their texts, drawn at random."""

from typing import Any

from hypothesis import strategies as st

from weft.node.fleetparts import Fleet, Group

EXAMPLE = """\
[fleet]
name = "lab"
heartbeat = "2s"
dead_after = 5

[metric.nginx_mem]
detail = "PROC_MEM"
param = "nginx"
rate = "10s"
threshold = ">500000000"

[metric.net]
detail = "NET_IF"
rate = "1s"
aggregate = ["sum", "max"]

[alert.loud]  # of every group that has `net`
metric = "net"
when = "> 1e6"
for = "5m"

[[chains.filter]]
name = "busy"
kind = "threshold"
where = { name = "net" }
above = 1e6

[group.site]  # first level: full replicas
collectors = ["10.0.0.2:27500", "10.0.0.3:27500"]
members = ["10.0.0.0/24"]
metrics = ["net"]

[group.web]
parent = "site"
members = ["web*.lab:27500", "[2001:db8::7]:27500"]
exclude = ["web9.lab"]
fanout = 32
labels = { role = "web" }
metrics = ["nginx_mem"]
filters = ["busy"]

[group.web.metric.net]  # not as the others
detail = "NET_IF"
rate = "100ms"

[group.web.alert.big]
metric = "nginx_mem"
when = "> 1 GiB"
clear = "900 MiB"
severity = "critical"
"""

names = st.from_regex(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,6}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
numbers = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False, width=32)
rates = st.sampled_from(["1s", "250ms", "1.5m", 2, 0.5, "once", "on-demand"])


@st.composite
def metrics(draw: st.DrawFn) -> dict[str, Any]:
    table: dict[str, Any] = {"detail": draw(st.sampled_from(["CPU", "MEMORY", "LOAD"])), "rate": draw(rates)}
    if draw(st.booleans()):
        table["threshold"] = draw(st.sampled_from(["<1.5", ">90", "> 1e3"]))
    return table


@st.composite
def alerts(draw: st.DrawFn, metric: str) -> dict[str, Any]:
    table = {"metric": metric, "when": draw(st.sampled_from(["> 90", "<1.5"]))}
    optional = {"for": st.sampled_from(["5m", 0.5]), "severity": st.just("critical"), "text": texts}
    return table | draw(st.fixed_dictionaries({}, optional=optional))


@st.composite
def filters(draw: st.DrawFn) -> dict[str, Any]:
    where = draw(st.dictionaries(st.sampled_from(["name", "labels.cpu", "detail"]), texts, min_size=1))
    return draw(
        st.sampled_from(
            [
                {"kind": "match", "where": where},
                {"kind": "threshold", "above": draw(numbers), "where": {"value": {"gt": draw(numbers)}}},
                {"kind": "rate-limit", "count": 5, "per": "2s", "place": 7},
            ]
        )
    )


@st.composite
def fleets(draw: st.DrawFn) -> Fleet:
    """Any fleet that a file can describe; groups nest by the order of their drawing."""
    times = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "name": names,
                "heartbeat": st.sampled_from([2, 0.05, 3600, 0.125]),
                "dead_after": st.integers(2, 100),
            },
        )
    )
    groups: dict[str, Group] = {}
    alert = st.sampled_from(["net", "busy", "x"])
    for index, name in enumerate(
        draw(st.lists(names.filter(lambda n: n not in ("root", "global")), max_size=4, unique=True))
    ):
        measured = draw(st.dictionaries(names, metrics(), max_size=3))
        about = st.sampled_from(sorted(measured)).flatmap(alerts) if measured else st.nothing()
        groups[name] = Group(
            name=name,
            parent=draw(st.sampled_from(["", *groups])),
            members=(f"10.0.{index}.0/24", f"[2001:db8::{index}]:27500"),
            exclude=draw(st.sampled_from([(), (f"10.0.{index}.9", "web*")])),
            collectors=draw(st.sampled_from([(), (f"10.0.{index}.2:27500",)])),
            prefer=draw(st.booleans()),
            fanout=draw(st.none() | st.integers(1, 1000)),
            labels=draw(st.dictionaries(texts, texts, max_size=2)),
            metrics=measured,
            filters=draw(st.dictionaries(names, filters(), max_size=3)),
            alerts=draw(st.dictionaries(alert, about, max_size=2)) if measured else {},
        )
    return Fleet(times=times, groups=groups)

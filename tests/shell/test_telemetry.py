"""What a node shows of itself: each field of its status is described, and its metrics are such as Prometheus wants."""

import inspect
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.shell.world import Host, World
from weft.base.effects import Source
from weft.cli.status import row_of, troubles_of
from weft.cores.catalog.core import Catalog
from weft.cores.catalog.show import COUNTED as CATALOG_COUNTED
from weft.cores.chains.core import Chains
from weft.cores.configuration.core import Configuration
from weft.cores.document.core import Documents
from weft.cores.store.core import Store
from weft.cores.store.show import COUNTED
from weft.cores.topology.core import Topology
from weft.cores.topology.groups import Guest
from weft.shell.ends import Heard
from weft.shell.facts import FACTS, TIMINGS
from weft.shell.http.messages import Request, Response
from weft.shell.metrics import exposition, leaves_at
from weft.shell.sockets import Credentials
from weft.wire.data import Data
from weft.wire.data import encode as encode_data

FIXED = {fact.path.rpartition(".")[2] for fact in FACTS} - {"*"}
"""Fields of the status that have names of their own."""
PAGE = Path(__file__).parents[2] / "docs" / "status.md"
HEAD = """# Status, health, metrics

What a node answers on its port +6: `/status` (`nodes` of `weft status --json`), `/healthz` (the part `health` of it;
status 503 if it failed, with `?ready=1` also until it is where it belongs), `/metrics` (what is a number of it, for
Prometheus), `/alerts` (what fires; `weft alerts`), `/quarantine` (the last messages that it refused; `weft quarantine`), `/flight` (the last things that it
heard and did, as JSON lines; `weft debug dump`), `/trace` (where one record is; `weft trace`), and on a broker the pages of [catalog.md](catalog.md#by-http). Metrics of one
subsystem are at most 500 series; of a metric at most 100 names are shown, the rest is `other`. A path names a field; `*` stands
for the keys of a map. Fields are only ever added. This page is generated from `weft.shell.facts`.

| field | meaning | metric |
|---|---|---|
"""
TAIL = """
What is measured all the time; each is a histogram:

| timing | meaning | metric |
|---|---|---|
"""


def statuses(place: Path) -> list[dict[str, Any]]:
    """Of a root, a collector and a sensor that have had some life, and some trouble."""
    world = World(place)
    filters = [{"name": "few", "kind": "rate-limit", "count": 5, "per": "1h"}]
    asked: dict[str, Any] = {"chp": {"port": 5_556}, "store": {}, "catalog": {}, "doc": {"session": {"friday": {}}}}
    root = world.host("root", "root", **asked, export={"nobody": {"otlp": "http://127.0.0.1:1/v1/metrics"}})
    hosts = [root, world.host("collector", "collector", "root")]
    hosts.append(world.host("sensor", "sensor", "collector", chains={"filter": filters}))
    shown: list[dict[str, Any]] = []

    async def play() -> None:
        for host in hosts:
            host.start()
        await world.pass_time(2)
        for host in hosts:
            host.links.hear(Heard(Source("down", b"\x01stranger"), [b"noise"]))
            host.links.hear(Heard(Source("beacon", b"127.0.0.1"), [BEACON]))
            host.links.dropped["up:closed"] += 1
        hosts[-1].take(10)
        hosts[-1].up.links.credentials = Credentials()
        hosts[-1].up.links.credentials.shut.note("10.0.0.1:27507", "key-refused", 0.0)
        hosts[0].links.hear(Heard(Source("data", b""), encode_data(FOREIGN)))
        hosts[0].up.node.census.learn([(f"/TOPO/lab/node/{SOMEBODY.hex()}", RECORD)])
        topology, configuration = (hosts[0].up.node.cores[name] for name in ("topology", "configuration"))
        assert isinstance(topology, Topology)
        assert isinstance(configuration, Configuration)
        topology.registry.unassigned[SOMEBODY] = Guest(SOMEBODY, "10.0.0.9:27500", "nine")
        chains = hosts[0].up.node.cores["chains"]
        assert isinstance(chains, Chains)
        chains.roster.others["in"].end("deleted")
        chains.context.copies.end("no-room")
        chains.context.counters.refuse("empty")
        catalog = hosts[0].up.node.cores["catalog"]
        assert isinstance(catalog, Catalog)
        for metric in (*CATALOG_COUNTED, "requests"):
            catalog.context.count(metric, "some")
        documents = hosts[0].up.node.cores["document"]
        assert isinstance(documents, Documents)
        documents.sessions["friday"].context.count("log.ops")
        store = hosts[0].up.node.cores["store"]
        assert isinstance(store, Store)
        store.replica.book.raise_top("attic", 3)
        store.mesh.know("10.0.0.7:27500")
        store.mesh.peers["10.0.0.7:27500"].node = "attic"
        for metric in (*COUNTED, "resent"):
            store.context.count(metric, "some")
        for told in ("wtf_heard", "wtf_said", "refused"):
            configuration.counters.count(getattr(configuration.counters, told), 7)
        await world.pass_time(5)
        shown.extend(ask(host, "/status")[1] for host in hosts)

    world.run(play())
    return shown


FOREIGN = Data(source="10.0.0.8:5556", type="basic", detail="LOAD", config_name="load", time_ms=1, value=0.5)
SOMEBODY = b"\x05" * 16
RECORD = (
    b'{"endpoint":"10.0.0.3:27500","level":"leaf","tier":1,"parent":"10.0.0.1:27500","incarnation":1,"name":"three"}'
)
BEACON = b"WEFTN1 weft other " + b"0f" * 16 + b" sensor 27510 3"


def leaves(value: Any, path: str = "") -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from leaves(inner, f"{path}.{key}")
    elif isinstance(value, list):
        for inner in value:
            yield from leaves(inner, f"{path}.*")
    else:
        yield path[1:]


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return statuses(tmp_path_factory.mktemp("fabric"))


@pytest.mark.generates
@pytest.mark.proves("OBS-005")
def test_the_page_describes_every_field(committed: Callable[[Path, str], None]) -> None:
    rows = [
        f"| `{fact.path}` | {fact.meaning} | {_metric(fact.metric, fact.labels)} |"
        for fact in sorted(FACTS, key=lambda fact: (fact.path.count("."), 0))
    ]
    timings = [f"| `{name}` | {meaning} | `{metric}` |" for name, (metric, meaning) in TIMINGS.items()]
    committed(PAGE, HEAD + "\n".join(rows) + "\n" + TAIL + "\n".join(timings) + "\n")


def _metric(name: str, labels: tuple[str, ...]) -> str:
    return f"`{name}{{{','.join(labels)}}}`" if labels else f"`{name}`" if name else ""


def test_every_field_of_a_status_has_a_fact_and_every_fact_a_field(told: list[dict[str, Any]]) -> None:
    known = {fact.path: re.compile(re.escape(fact.path).replace(r"\*", r"[^.]+") + r"\Z") for fact in FACTS}
    shown = {path for status in told for path in leaves(status)}
    assert [] == sorted(path for path in shown if not any(pattern.match(path) for pattern in known.values()))
    assert [] == sorted(path for path, pattern in known.items() if not any(map(pattern.match, shown)))


@pytest.mark.proves("OBS-003")
def test_metrics_are_such_as_promtool_asks_for(told: list[dict[str, Any]]) -> None:
    for status in told:
        text = exposition(status).decode()
        families = list(text_string_to_metric_families(text))
        assert len(families) > 30
        for family in families:
            assert re.fullmatch(r"weft_[a-z][a-z0-9_]*[a-z0-9]", family.name), family.name
            assert family.documentation, family.name
            assert family.type in ("counter", "gauge", "histogram"), family.name
            is_counter = f"# TYPE {family.name}_total counter" in text
            assert is_counter == (family.type == "counter"), family.name
            words = family.name.split("_")
            assert not {"counter", "gauge", "metric", "ms", "ns", "minutes", "hours", "mb", "megabytes"} & set(words)
            assert 0 < len(family.samples) <= 500
            for sample in family.samples:
                assert all(re.fullmatch(r"[a-z][a-z0-9_]*", label) for label in sample.labels)
        assert len(families) == text.count("# HELP ") == text.count("# TYPE ")
        assert text.endswith("\n")


def value_of(status: dict[str, Any], metric: str, **labels: str) -> float:
    for family in text_string_to_metric_families(exposition(status).decode()):
        for sample in family.samples:
            if (sample.name, sample.labels) == (metric, labels):
                return sample.value
    raise AssertionError(f"no {metric}{labels}")


@pytest.mark.proves("OBS-003")
def test_metrics_say_what_the_status_says(told: list[dict[str, Any]]) -> None:
    root, _, sensor = told
    assert 5 == value_of(sensor, "weft_measurement_numbered_total")
    assert 1 == value_of(root, "weft_security_open")
    assert 1 == value_of(root, "weft_node_refused_total", channel="down", code="bad-header")
    assert 1 == value_of(sensor, "weft_links_dropped_total", channel="up", why="closed")
    assert 5 == value_of(sensor, "weft_chains_link_passed_total", link="few")
    assert root["journal"]["budget_bytes"] == value_of(root, "weft_journal_budget_bytes")
    assert 1 == value_of(sensor, "weft_carrier_refused_total", code="bad-header")


def test_a_thousand_kinds_of_refusals_do_not_become_a_thousand_series(told: list[dict[str, Any]]) -> None:
    status = told[0] | {"refused": {f"down:code-{n}": n for n in range(2_000)}}
    text = exposition(status).decode()
    shown = text.count("weft_node_refused_total{")
    assert 25 < shown <= 101
    assert 2_000 * 1_999 // 2 - sum(range(shown - 1)) == value_of(
        status, "weft_node_refused_total", channel="other", code="other"
    )


@pytest.mark.proves("OBS-003")
def test_no_subsystem_shows_more_than_500_series_however_many_peers_there_are(told: list[dict[str, Any]]) -> None:
    crowd = {f"peer-{number}:state": number for number in range(1_500)}

    def crowded(value: Any) -> Any:
        """The same status, in which each map of numbers has become a crowd."""
        if isinstance(value, dict):
            if value and all(isinstance(one, int) for one in value.values()) and not set(value) & FIXED:
                return crowd
            return {key: crowded(one) for key, one in value.items()}
        return value

    most = []
    for status in told:
        crowd_of_it = {key: value if key == "timings" else crowded(value) for key, value in status.items()}
        counted: Counter[str] = Counter()
        for family in text_string_to_metric_families(exposition(crowd_of_it).decode()):
            names = {tuple(sample.labels.values()) for sample in family.samples if "le" not in sample.labels}
            assert len(names) <= 101, family.name
            counted[family.name.split("_")[1]] += len(family.samples)
        most.append(max(counted.values()))
        assert {} == {name: count for name, count in counted.items() if count > 500}
    assert max(most) > 300


@pytest.mark.proves("OBS-004")
def test_what_is_always_measured_is_there_from_the_first_second(told: list[dict[str, Any]]) -> None:
    always = [
        "weft_node_turn_seconds_count",
        "weft_journal_sync_seconds_count",
        "weft_node_turn_messages_count",
        "weft_journal_turn_records_count",
        "weft_node_loop_lag_seconds_count",
        "weft_journal_safe_seconds_count",
        "weft_node_memory_bytes",
        "weft_node_open_files",
        "weft_node_era",
        "weft_build_info",
        'weft_node_queue_items{queue="spool"}',
        'weft_node_queue_bytes{queue="spool"}',
        'weft_node_queue_bytes_max{queue="spool"}',
        'weft_node_queue_bytes_max{queue="outbox"}',
        'weft_node_queue_bytes_max{queue="inbox"}',
        'weft_node_queue_items_max{queue="updates"}',
        'weft_node_refused_total{channel="down",code="bad-header"}',
    ]
    for status in told[:2]:
        text = exposition(status).decode()
        assert [name for name in always if f"\n{name}" not in text] == []
    assert told[1]["queues"]["updates"]["items_max"] == 10_000
    assert told[2]["queues"]["spool"]["items"] == told[2]["cores"]["carrier"]["spool_records"]


def test_strange_words_in_labels_are_escaped(told: list[dict[str, Any]]) -> None:
    status = told[0] | {"dropped": {'up:no "way"\nback\\slash': 3}}
    assert 3 == value_of(status, "weft_links_dropped_total", channel="up", why='no "way"\nback\\slash')


def ask(host: Host, path: str, query: str = "") -> tuple[int, dict[str, Any]]:
    page = host.up.telemetry.pages()[path].handle(Request("GET", path, query))
    assert isinstance(page, Response)
    return page.status, json.loads(page.body)


@pytest.mark.proves("OBS-005")
def test_health_says_whether_it_is_ready_and_since_when_something_is_wrong(tmp_path: Path) -> None:
    world = World(tmp_path)
    root, sensor = world.host("root", "root"), world.host("sensor", "sensor", "root")

    async def play() -> None:
        sensor.start()
        began = sensor.clock.now().wall // 10**9
        await world.pass_time(30)
        code, facts = ask(sensor, "/healthz")
        assert (200, 503) == (code, ask(sensor, "/healthz", "ready=1")[0])
        (parent,) = [check for check in facts["checks"] if check["name"] == "parent"]
        assert ("degraded", "degraded") == (facts["state"], parent["state"])
        assert 0 <= parent["since"] - began <= 5.0 + 1  # whole seconds, by a node that looks when it is idle
        assert ("records wait" in parent["text"], "runs" in parent["do"]) == (True, True)
        root.start()
        await world.until(lambda: ask(sensor, "/healthz", "ready=1")[0] == 200)
        assert "ok" == ask(sensor, "/healthz")[1]["state"]
        assert {"state", "ready", "open", "era", "uptime_s", "checks"} == ask(sensor, "/healthz")[1].keys()
        sensor.up.journal.state = type(sensor.up.journal.state).FAILED
        assert (503, "failed") == (ask(sensor, "/healthz")[0], ask(sensor, "/healthz")[1]["state"])
        (line,) = troubles_of(ask(sensor, "/status")[1])
        assert ("sensor", "journal") == line[:2]
        assert "failed" in row_of(ask(sensor, "/status")[1], 1)

    world.run(play())


@pytest.mark.proves("CON-004", part="a running node puts the name of the login into the history")
@pytest.mark.proves("MET-003", part="the status of a root says that an alert can never fire")
def test_a_root_signs_the_orders_of_a_login_and_says_which_alerts_can_never_fire(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def order(token: str = "", **said: Any) -> Any:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        request = Request("POST", "/order", headers=headers, body=json.dumps(said).encode())
        answer = root.up.telemetry.http.routes["/order"].handle(request)
        assert inspect.isawaitable(answer)
        response = await answer
        assert isinstance(response, Response)
        return json.loads(response.body)

    async def play() -> None:
        root.start()
        await world.pass_time(30)
        token = root.up.telemetry.logins.add("anna", 60)
        metric, alert = "/CONFIG/all/metric/disk", "/CONFIG/all/alert/full"
        first = await order(token, order="set", key=metric, value={"detail": "DISK", "rate": "1s"}, who="joe")
        await order(order="set", key=metric, value={"detail": "DISK_PERCENT", "rate": "1s"}, who="joe")
        await order(order="set", key=alert, value={"metric": "disk", "when": "> 90 %"})
        assert ([], "ok") == (troubles_of(root.up.telemetry.status()), root.up.telemetry.health_facts()["state"])
        back = await order(token, order="rollback", number=first["number"], subtree=metric, who="anna: too slow")
        (dead,) = back["dead"]
        assert dead.startswith(f"{alert}: E11 when: DISK is not measured in %")
        assert [("root", "alerts", f"1 alert can never fire: {dead}")] == [
            trouble[:3] for trouble in troubles_of(root.up.telemetry.status())
        ]
        assert 1 == root.up.telemetry.status()["alerts"]["dead"]
        written = await order(order="history", subtree=metric)
        assert ["anna: too slow", "joe", "anna: joe"] == [write[1] for write in written["writes"]]

    world.run(play())


def test_leaves_of_maps_and_lists_are_found_by_their_path() -> None:
    status = {"a": {"x": {"n": 1}, "y": {"n": 2, "m": 3}}, "l": [{"n": 4}]}
    assert [(("x",), 1), (("y",), 2)] == list(leaves_at(status, ["a", "*", "n"]))
    assert [(("0",), 4)] == list(leaves_at(status, ["l", "*", "n"]))
    assert [] == list(leaves_at(status, ["a", "n"]))


@pytest.mark.proves("CFG-093")
def test_what_was_refused_is_a_page(tmp_path: Path) -> None:
    world = World(tmp_path)
    root = world.host("root", "root")

    async def play() -> None:
        root.start()
        root.links.hear(Heard(Source("down", b"\x01stranger"), [b"noise"]))
        await world.pass_time(1)
        code, facts = ask(root, "/quarantine")
        assert (200, 1) == (code, facts["refused"])
        (message,) = facts["messages"]
        assert ("down", "bad-header", b"noise".hex()) == (
            message["channel"],
            message["code"],
            message["frames"][0]["hex"],
        )

    world.run(play())


def test_a_parent_says_of_each_child_what_it_has_kept(told: list[dict[str, Any]]) -> None:
    root, collector, sensor = told
    for parent, child in ((root, collector), (collector, sensor)):
        (link,) = parent["children"]
        assert (child["name"], child["node"], child["era"]) == (link["name"], link["node"], link["era"])
        assert child["cores"]["carrier"]["held"] == link["kept"] > 0
        assert 0 <= link["heard_s"] <= 5
    assert [] == sensor["children"]
    assert [{"source": FOREIGN.source, "series": 1, "heard_s": 5}] == root["foreign"]

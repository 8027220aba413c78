"""How values go to monitoring systems outside: what is asked of them, and what happens if they do not take it (MET-006)."""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from tests.export.fields import OTLP_REQUEST, message, written
from tests.fabric.receivers import Monitor
from tests.shell.ports import free_port
from tests.shell.test_console import ROOT, SENSOR, WALL_S, batch
from weft.base.errors import UserError
from weft.base.records import Entry, StreamRecord
from weft.cores.export.messages import GiveWay, RangeFailed, RangeSent, SendRange
from weft.node.exporttable import ExportTable
from weft.node.settings import settings_of
from weft.shell import exporting
from weft.shell.exporting import Receiver
from weft.shell.exports import make_room
from weft.wire.protobuf import integer, text
from weft.wire.protobuf import message as field
from weft.wire.samples import Series

pytestmark = pytest.mark.proves("MET-006", part="remote-write and OTLP over HTTP: what is not taken is sent again")

CPU = Series("cpu", "CPU", "percent", {"cpu": "total"})
OWN = Series("own", "SOMETHING", "basic", {"a b": "x", "unit": "y"})
START_MS = round(WALL_S * 1_000)


class Journal:
    """Records with lsn from 101 on, one each second, read two at a time."""

    def __init__(self, *values: tuple[Series, float, float | None], node: bytes = SENSOR) -> None:
        self.entries: list[Entry] = []
        for value in values:
            self.add(value, node)

    def add(self, value: tuple[Series, float, float | None], node: bytes = SENSOR, second: float | None = None) -> None:
        lsn = 101 + len(self.entries)
        record = batch(node, len(self.entries) if second is None else second, lsn, value)
        assert isinstance(record, StreamRecord)
        self.entries.append((lsn, msgspec.structs.replace(record, attributes={"n": 1, "node": f"s-{node[0]}"})))

    def read(self, after: int, _: int) -> tuple[list[Entry], int]:
        found = [entry for entry in self.entries if entry[0] > after][:2]
        return found, found[-1][0] if found else after

    @property
    def end(self) -> int:
        return 100 + len(self.entries)


def own(count: int) -> Journal:
    return Journal(*[(OWN, float(number), None) for number in range(count)])


def work(journal: Journal, attempt: int = 1, **place: int) -> SendRange:
    return SendRange("x", attempt, **{"warm": 100, "after": 100, "upto": journal.end, **place})


def values(bodies: list[bytes], name: str = "weft_something") -> list[tuple[float, float]]:
    """Seconds and values of all samples that were taken."""
    found = [
        each for body in bodies for labels, own in written(body).items() if f"__name__={name}" in labels for each in own
    ]
    return [((at - START_MS) / 1_000, value) for at, value in found]


@pytest.fixture
def monitor() -> Iterator[Monitor]:
    with Monitor() as served:
        yield served


def prometheus(monitor: Monitor, journal: Journal, **more: Any) -> Any:
    """A receiver, of whose outcomes a test says which it expects."""
    return Receiver(ExportTable(prometheus=f"http://127.0.0.1:{monitor.port}/write", **more), journal.read)


def test_values_are_calculated_named_and_labelled_and_asked_for_as_prometheus_wants(monitor: Monitor) -> None:
    journal = Journal((CPU, 0, 0), (OWN, 3.0, None), (CPU, 25, 100))
    receiver = prometheus(monitor, journal, headers={"Authorization": "Bearer abc"}, labels={"site": "lab"})
    assert RangeSent("x", 1, 103, samples=2, skipped=1) == receiver.outcome(work(journal))
    name = f"s-{SENSOR[0]}"
    assert {
        ("__name__=weft_cpu_ratio", "cpu=total", "metric=cpu", f"node={name}", "site=lab"): [(START_MS + 2_000, 0.25)],
        ("__name__=weft_something", "a_b=x", "metric=own", f"node={name}", "site=lab"): [(START_MS + 1_000, 3.0)],
    } == {labels: own for body in monitor.taken for labels, own in written(body).items()}
    asked = monitor.asked[0]
    assert ("snappy", "application/x-protobuf") == (asked["content-encoding"], asked["content-type"])
    assert ("0.1.0", "Bearer abc") == (asked["x-prometheus-remote-write-version"], asked["authorization"])


def test_what_was_not_taken_is_kept_and_sent_again_and_nothing_twice(monitor: Monitor) -> None:
    journal = own(5)
    receiver = prometheus(monitor, journal)
    answers = iter([204, 503, 429, 401, 302])
    monitor.judge = lambda _: (next(answers, 204), b"not now")
    for attempt in range(1, 5):
        failed = receiver.outcome(work(journal, attempt))
        assert isinstance(failed, RangeFailed)
        assert attempt == failed.attempt
        assert "302" in failed.why or "not now" in failed.why
    assert RangeSent("x", 5, 105, samples=5) == receiver.outcome(work(journal, 5))
    assert [(float(number), float(number)) for number in range(5)] == values(monitor.taken)


def test_nobody_who_listens_is_a_failure_that_says_so() -> None:
    journal = own(1)
    receiver = Receiver(ExportTable(otlp=f"http://127.0.0.1:{free_port()}/v1/metrics"), journal.read)
    failed = receiver.outcome(work(journal))
    assert isinstance(failed, RangeFailed)
    assert "refused" in failed.why


def test_a_few_samples_that_are_refused_for_good_do_not_cost_the_others(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "POINTS_MAX", 64)
    journal = Journal()
    for number in range(200):
        journal.add((OWN, float(number), None))

    def judge(body: bytes) -> tuple[int, bytes]:
        is_old = any(value < 3 for _, value in values([body]))
        return (400, b"out of bounds") if is_old else (204, b"")

    monitor.judge = judge
    monkeypatch.setattr(journal, "read", lambda *_: (journal.entries, journal.end))
    sent = prometheus(monitor, journal).outcome(work(journal))
    assert (197, 3) == (sent.samples, sent.refused)
    assert "400 Bad Request: out of bounds" == sent.why
    assert list(range(3, 200)) == [value for _, value in values(monitor.taken)]
    assert len(monitor.asked) < 20


def test_a_receiver_that_refuses_everything_is_soon_asked_once_for_each_request(
    monitor: Monitor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exporting, "POINTS_MAX", 2)
    journal = own(200)
    monitor.judge = lambda _: (400, b"no")
    sent = prometheus(monitor, journal).outcome(work(journal))
    assert (0, 200) == (sent.samples, sent.refused)
    assert len(monitor.asked) < 120


def test_a_start_calculates_from_what_stood_before_and_sends_only_what_is_new(monitor: Monitor) -> None:
    journal = Journal(*[(CPU, 25 * number, 100 * number) for number in range(6)])
    assert 3 == prometheus(monitor, journal).outcome(work(journal, upto=104)).samples
    assert RangeSent("x", 1, 106, samples=2) == prometheus(monitor, journal).outcome(work(journal, warm=103, after=104))
    assert [1.0, 2.0, 3.0, 4.0, 5.0] == [second for second, _ in values(monitor.taken, "weft_cpu_ratio")]


def test_a_sample_that_is_not_newer_than_the_last_of_its_series_is_not_offered(monitor: Monitor) -> None:
    journal = own(2)
    journal.add((OWN, 7.0, None), second=0.5)
    journal.add((OWN, 8.0, None), ROOT, second=0.5)
    journal.add((OWN, float("nan"), None), second=3)
    sent = prometheus(monitor, journal).outcome(work(journal))
    assert (3, 2) == (sent.samples, sent.skipped)
    assert [(0.0, 0.0), (0.5, 8.0), (1.0, 1.0)] == sorted(values(monitor.taken))


def test_after_the_journal_gave_way_what_was_left_over_is_not_sent(monitor: Monitor) -> None:
    journal = own(4)
    receiver = prometheus(monitor, journal)
    monitor.judge = lambda _: (500, b"")
    receiver.outcome(work(journal, upto=102))
    monitor.judge = lambda _: (204, b"")
    assert RangeSent("x", 2, 104, samples=1) == receiver.outcome(work(journal, 2, warm=103, after=103))
    assert [(3.0, 3.0)] == values(monitor.taken)


def test_an_attempt_that_takes_long_says_how_far_it_came(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "ATTEMPT_S", 0.0)
    journal = own(3)
    receiver = prometheus(monitor, journal)
    assert 100 == receiver.outcome(work(journal)).upto or monitor.taken
    monkeypatch.setattr(exporting, "ATTEMPT_S", 60.0)
    assert 103 == receiver.outcome(work(journal, 2)).upto


def test_a_journal_that_ends_too_early_is_a_failure(monitor: Monitor) -> None:
    journal = own(1)
    failed = prometheus(monitor, journal).outcome(work(journal, upto=105))
    assert "the journal ends at 101, before 105" in failed.why


def test_series_of_one_machine_are_bounded(monitor: Monitor, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exporting, "SERIES_OF_ONE_MAX", 3)
    journal = Journal(*[(Series("own", "X", "basic", {"n": str(number)}), 1.0, None) for number in range(5)])
    sent = prometheus(monitor, journal).outcome(work(journal))
    assert (3, 2) == (sent.samples, sent.skipped)
    monkeypatch.setattr(exporting, "SERIES_MAX", 2)
    sent = prometheus(monitor, journal).outcome(work(journal))
    assert 5 == sent.samples, "the series that it has seen are forgotten, not those that come"


def test_points_that_a_receiver_of_otlp_refuses_in_part_are_counted(monitor: Monitor) -> None:
    journal = own(3)
    partial = field(1, integer(1, 1), text(2, "one is too old"))
    monitor.judge = lambda _: (200, partial)
    table = ExportTable(otlp=f"http://127.0.0.1:{monitor.port}/v1/metrics")
    sent: Any = Receiver(table, journal.read).outcome(work(journal))
    assert (1, 2, "one is too old") == (sent.samples, sent.refused, sent.why)
    resources = [message(body, OTLP_REQUEST)["resource_metrics"][0] for body in monitor.taken]
    assert ["weft.something"] * 2 == [each["scope_metrics"][0]["metrics"][0]["name"] for each in resources]
    assert "content-encoding" not in monitor.asked[0]


@pytest.mark.parametrize(
    ("table", "code"),
    [
        ({}, "E03"),
        ({"prometheus": "http://a/x", "otlp": "http://a/x"}, "E03"),
        ({"prometheus": "ftp://a/x"}, "E05"),
        ({"otlp": "a:4318"}, "E05"),
        ({"otlp": "http://a/x", "headers": {"a": "b\nc"}}, "E04"),
        ({"otlp": "http://a/x", "labels": {"node": "b"}}, "E15"),
        ({"otlp": "http://a/x", "labels": {"1st": "b"}}, "E15"),
        ({"otlp": "http://a/x", "at": "nowhere"}, "E04"),
        ({"otlp": "http://a/x", "odd": 1}, "E02"),
    ],
)
def test_mistakes_in_a_receiver_have_codes(table: dict[str, Any], code: str) -> None:
    with pytest.raises(UserError, match=f"{code} .?export"):
        settings_of({"node": {"name": "r", "level": "root"}, "export": {"x": table}})


def test_a_receiver_of_a_root_gets_nothing_from_another_node() -> None:
    files = {"there": {"otlp": "http://a/x"}, "both": {"otlp": "http://a/x", "at": "here"}}
    root = settings_of({"node": {"name": "r", "level": "root"}, "export": files})
    sensor = settings_of({"node": {"name": "s", "parent": "127.0.0.1:1"}, "export": files})
    assert (["both", "there"], ["both"]) == (sorted(root.exports), sorted(sensor.exports))
    assert "export" in sensor.runs
    assert "export" not in settings_of({"node": {"name": "s", "parent": "127.0.0.1:1"}}).runs


class Held:
    """A journal that is so full, and what its readers have released."""

    def __init__(self, percent: int, **released: int) -> None:
        self.journal = self.node = self.limits = self
        self.budget_bytes, self.bytes_used = 1_000, 10 * percent
        self.released, self.cores = released, {"export": None}
        self.ordered: list[Any] = []

    def oldest_spans(self) -> tuple[int, tuple[()]]:
        return 40, ()

    def order(self, core: str, order: Any) -> None:
        self.ordered.append((core, order))


@pytest.mark.parametrize(
    ("held", "gives"),
    [
        (Held(51, export=10, carrier=90, drain=80), [("export", GiveWay(40))]),
        (Held(51, export=10, carrier=20), [("export", GiveWay(20))]),
        (Held(50, export=10, carrier=90), []),
        (Held(51, export=90, carrier=90), []),
        (Held(51, export=10), []),
        (Held(51, carrier=90), [("export", GiveWay(40))]),
    ],
)
def test_a_receiver_that_is_away_may_keep_half_of_the_journal(held: Held, gives: list[Any]) -> None:
    make_room(held)  # type: ignore[arg-type]  # as much of a runner as it asks for
    assert gives == held.ordered

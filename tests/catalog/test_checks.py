"""Active checks: what is looked at, how often, how many at once, and what is believed of it."""

from typing import Any

import pytest

from tests.catalog.rig import Broker
from weft.base.effects import Perform
from weft.cores.catalog.messages import CheckDone, CheckSettings, RunCheck

SECOND = 10**9


class Checking(Broker):
    """A broker whose checks end as a test says."""

    def __init__(self, **settings: Any) -> None:
        self.outcome = "passing"
        self.runs: list[RunCheck] = []
        self.pending: list[int] = []
        self.is_slow = False
        super().__init__(**settings)

    def perform(self, effects: list[Any]) -> None:
        ran = [effect.work for effect in effects if isinstance(effect, Perform)]
        super().perform(effects)
        self.runs += ran
        for work in ran:
            if self.is_slow:
                self.pending.append(work.id)
            else:
                self.done(work.id)

    def done(self, number: int) -> None:
        self.core.command(CheckDone(number, self.outcome), self.now)
        self.turn()

    def service(self, *checks: dict[str, Any], name: str = "web", **more: Any) -> None:
        record = {"name": name, "ip": "127.0.0.1", "port": 80, "heartbeat": 3_600_000, "checks": list(checks), **more}
        assert [b"OwO"] == self.req().commands(b"UwU", record)

    def health(self, name: str = "web") -> str:
        return self.one(name).health


@pytest.mark.proves("BEA-024")
@pytest.mark.parametrize(
    ("check", "run"),
    [
        ({"tcp": ""}, ("tcp", "127.0.0.1:80")),
        ({"tcp": "127.0.0.1:22"}, ("tcp", "127.0.0.1:22")),
        ({"zmq": ""}, ("zmq", "127.0.0.1:80")),
        ({"http": "/health?x=1"}, ("http", "http://127.0.0.1:80/health?x=1")),
        ({"http": "http://127.0.0.1:8080/"}, ("http", "http://127.0.0.1:8080/")),
    ],
)
def test_a_check_looks_where_the_service_is_or_says(check: dict[str, Any], run: tuple[str, str]) -> None:
    broker = Checking()
    broker.service({**check, "timeout": 2.0})
    broker.pass_time(1.0)
    assert [(*run, 2 * SECOND)] == [(each.kind, each.target, each.timeout_ns) for each in broker.runs]


@pytest.mark.proves("BEA-024", part="what may be looked at")
@pytest.mark.parametrize(
    "check",
    [
        {"tcp": "10.0.0.5:80"},
        {"tcp": "example.org:80"},
        {"http": "http://10.0.0.5/"},
        {"http": "file:///etc/passwd"},
        {"http": "http://["},
        {"http": "http://127.0.0.1/a\r\nX: y"},
        {"http": "http://127.0.0.1/a HTTP/1.1"},
        {"tcp": "", "http": "/"},
        {"command": ["reboot"]},
        {"tcp": "", "interval": 0.1},
        {"tcp": "", "timeout": 99},
        {},
    ],
)
def test_what_goes_elsewhere_or_is_none_is_not_looked_at_and_counted(check: dict[str, Any]) -> None:
    broker = Checking()
    broker.service(check)
    broker.pass_time(60)
    assert ([], 1, "unknown") == (broker.runs, broker.counted("checks"), broker.health())


@pytest.mark.proves("BEA-024", part="networks that may be probed")
def test_networks_of_the_settings_may_be_looked_at() -> None:
    broker = Checking(probe_allow=("10.0.0.0/8",))
    broker.service({"tcp": "10.0.0.5:80"})
    broker.pass_time(1)
    assert ["10.0.0.5:80"] == [run.target for run in broker.runs]


@pytest.mark.proves("BEA-024", part="fall, rise, and what is told")
def test_so_many_in_a_row_change_what_is_believed_and_each_change_is_told() -> None:
    broker = Checking()
    broker.service({"tcp": "", "interval": 1})
    broker.pass_time(0.999)
    assert "unknown" == broker.health()
    broker.pass_time(1.5)
    assert "passing" == broker.health()
    broker.outcome = "critical"
    broker.pass_time(2)
    assert "passing" == broker.health()
    broker.pass_time(1)
    assert "critical" == broker.health()
    assert {"warning", "state"} <= broker.req().ask(b"web").keys()
    broker.outcome = "passing"
    broker.pass_time(2)
    assert [("register", "web"), ("health", "web"), ("health", "web"), ("health", "web")] == broker.changes
    assert "ACTIVE" == broker.one("web").state.name


@pytest.mark.proves("BEA-024", part="the worst counts")
@pytest.mark.parametrize(
    ("own", "found", "expected"),
    [
        (None, "passing", "passing"),
        ("warning", "passing", "warning"),
        ("passing", "critical", "critical"),
        ("critical", "passing", "critical"),
    ],
)
def test_the_worst_of_checks_and_self_report_counts(own: str | None, found: str, expected: str) -> None:
    broker = Checking()
    broker.outcome = found
    broker.service({"tcp": "", "interval": 1}, **({"health": own} if own else {}))
    broker.pass_time(5)
    assert expected == broker.health()
    broker.req().say(b"UoU", {"name": "web", "tags": ["x"]})
    assert expected == broker.health()


@pytest.mark.proves("BEA-024", part="so many at once")
def test_no_more_than_so_many_run_at_once_and_none_is_forgotten() -> None:
    broker = Checking()
    broker.is_slow = True
    for number in range(20):
        broker.service(*[{"tcp": "", "interval": 1}] * 9, name=f"s{number}", port=100 + number)
    broker.pass_time(1.5)
    assert (64, 64) == (len(broker.runs), len(broker.pending))
    broker.is_slow = False
    for number in broker.pending:
        broker.done(number)
    broker.pass_time(5)
    assert {f"127.0.0.1:{100 + number}" for number in range(20)} == {run.target for run in broker.runs}
    assert broker.counted("checks", "late")


@pytest.mark.proves("BEA-024", part="checks of the file")
def test_commands_stand_in_the_brokers_file_alone() -> None:
    usual: dict[str, Any] = {"interval_ns": SECOND, "timeout_ns": SECOND, "fall": 1, "rise": 1}
    checks = (
        CheckSettings(service="st*", kind="command", command=("/bin/ok", "-x"), **usual),
        CheckSettings(service="st*", kind="tcp", **usual),
    )
    broker = Checking(checks=checks)
    broker.service(name="store")
    broker.service(name="other", port=81)
    broker.pass_time(1)
    assert [("command", ("/bin/ok", "-x")), ("tcp", ())] == sorted((run.kind, run.command) for run in broker.runs)
    broker.outcome = "warning"
    broker.pass_time(1)
    assert ("warning", "unknown") == (broker.health("store"), broker.health("other"))


@pytest.mark.proves("BEA-024", part="ends and restarts")
def test_who_is_gone_is_looked_at_no_more_and_who_was_restored_again() -> None:
    broker = Checking()
    broker.service({"tcp": "", "interval": 1})
    broker.pass_time(2)
    again = Checking(journal=broker.journal, era=2)
    again.pass_time(2)
    assert again.runs
    again.admin().ask(b"dbp.deregister", b"web")
    before = len(again.runs)
    again.pass_time(10)
    assert before == len(again.runs)


@pytest.mark.proves("BEA-024", part="who has left before a restart")
def test_who_had_left_before_a_restart_is_not_looked_at_by_the_next_start() -> None:
    broker = Checking()
    broker.service({"tcp": "", "interval": 1}, id="w1")
    broker.pass_time(2)
    broker.req().commands(b"</3", b"web", b"w1")
    again = Checking(journal=broker.journal, era=2)
    again.pass_time(10)
    assert ([], "INACTIVE") == (again.runs, again.one("web").state.name)

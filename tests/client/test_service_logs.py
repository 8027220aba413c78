"""Log records of a service: to the bus, to this machine, and never in the program's way (LOG-003, LOG-004, LOG-006)."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zmq
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.client.node import in_loop, until
from tests.client.servicebroker import Caller, FakeBroker, Plain
from tests.client.test_service import service_of
from weft.catalog import Handler, Service
from weft.client.catalog import handler as handlers
from weft.client.catalog.servicelimits import RECORDS_WAITING_MAX, RING_MAX


class Kept(logging.Handler):
    """Keeps what it is given; its thread says when."""

    def __init__(self) -> None:
        super().__init__()
        self.records: list[str] = []
        self.has_some = threading.Event()

    def emit(self, record: logging.LogRecord) -> None:
        self.records.append(record.getMessage())
        self.has_some.set()


@pytest.fixture
def log() -> Iterator[logging.Logger]:
    made = logging.Logger("test.thermo", 1)  # noqa: LOG001  # nobody else's
    yield made
    for handler in made.handlers:
        handler.close()


def told(service: Service) -> list[dict[str, Any]]:
    """All that went to the bus."""
    service.bus.open(lambda: None, lambda _: None)
    service.bus.close()
    return list(service.bus.again(())["logs"])


@pytest.mark.proves("LOG-003", "LOG-004")
@in_loop
async def test_a_warning_is_published_in_the_own_form() -> None:
    async with FakeBroker() as broker, service_of(broker) as service, Plain(zmq.XSUB) as reader:
        log = logging.Logger("a.b")  # noqa: LOG001  # nobody else's
        log.addHandler(Handler(service, local=None))
        place = broker.records[0]["interfaces"]["pub"]
        reader.socket.connect(f"tcp://{place['ip']}:{place['port']}")
        reader.say(b"\x01log.")
        while reader.inbox.empty():
            log.warning("hot: %d", 90, extra={"sensor": "x"})
            await asyncio.sleep(0)
        topic, body = reader.inbox.get_nowait()
        said = json.loads(body)
        assert (b"log.thermo.WARNING", 1) == (topic, said["v"])
        expected = {"v", "ts", "level", "service", "instance", "logger", "message", "seq", "fields"}
        assert expected == set(said)
        told = [said[key] for key in ("level", "service", "instance", "logger", "message", "fields")]
        assert ["WARNING", "thermo", "i1", "a.b", "hot: 90", {"sensor": "x"}] == told
        assert said["seq"] >= 1


@pytest.mark.proves("LOG-006")
@in_loop
async def test_what_was_missed_can_be_asked_for_by_number() -> None:
    async with FakeBroker() as broker:
        service = service_of(broker)
        log = logging.Logger("a")  # noqa: LOG001  # nobody else's
        log.addHandler(Handler(service, local=None))
        log.error("before it runs")
        async with service, Caller(service.address) as caller:
            for number in range(2, RING_MAX + 12):
                log.warning("number %d", number)
            await until(lambda: service.bus.again(())["logs"][-1]["seq"] == RING_MAX + 11)
            for first, last, expected in ((5, 7, []), (12, 13, [12, 13]), (RING_MAX + 10, 9999, [1010, 1011])):
                answer = await caller.told(b"dbp.logs", json.dumps({"from": first, "to": last}).encode())
                assert expected == [record["seq"] for record in answer["logs"]]
            assert 1_000 == len((await caller.told(b"dbp.logs"))["logs"])


@pytest.mark.proves("LOG-004")
def test_lower_levels_stay_on_this_machine(log: logging.Logger) -> None:
    service, kept = Service("thermo"), Kept()
    log.addHandler(Handler(service, local=kept))
    log.info("quiet")
    assert kept.has_some.wait(10)
    log.warning("loud")
    assert (["quiet"], ["loud"]) == (kept.records, [record["message"] for record in told(service)])


@pytest.mark.proves("LOG-004")
@in_loop
async def test_the_threshold_is_changed_by_an_update() -> None:
    async with FakeBroker() as broker, service_of(broker) as service:
        handler = Handler(service, bus_level="ERROR", local=None)
        for level, expected in ((None, []), ("info", ["INFO"]), ("CRITICAL", ["INFO"])):
            if level:
                await service.update(bus_level=level)
            handler.handle(logging.makeLogRecord({"levelno": logging.INFO, "msg": "x"}))
            service.bus.flush()
            assert expected == [record["level"] for record in service.bus.again(())["logs"]]
        with pytest.raises(ValueError):
            await service.update(bus_level="loud")
        assert "CRITICAL" == json.loads(broker.bodies[b"UoU"][0])["bus_level"]


@pytest.mark.proves("LOG-004")
@pytest.mark.parametrize("has_syslog", [True, False])
def test_this_machine_is_syslog_or_else_a_file(
    has_syslog: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import socket

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "devlog"
    monkeypatch.setattr(handlers, "SYSLOG", str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
        if has_syslog:
            syslog.bind(str(path))
        handler = handlers.local_handler("thermo/x")
        handler.handle(logging.makeLogRecord({"name": "a", "levelno": 20, "levelname": "INFO", "msg": "quiet"}))
        handler.close()
        file = tmp_path / "weft/log/thermo_x.log"
        written = syslog.recv(1000).decode() if has_syslog else file.read_text("utf-8")
    assert "INFO a quiet" in written


class Nasty:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.proves("LOG-004")
@pytest.mark.parametrize(
    "parts",
    [
        {"msg": "%d", "args": ("x",)},
        {"msg": Nasty()},
        {"msg": "\udcff surrogate", "name": "\udcff", "\udcff": "\udcff"},
        {"msg": "x", "big": 1 << 200, "inf": float("inf"), "deep": [[]], "nasty": object()},
        {"msg": "x" * 1_000_000},
        {"msg": "x", "exc_info": (ValueError, ValueError("bad"), None)},
        {"msg": "x", "levelno": 10**9},
        {"msg": None, "created": "never"},
    ],
)
def test_no_record_is_too_odd(parts: dict[str, Any], log: logging.Logger) -> None:
    service = Service("thermo")
    handler = Handler(service, local=None)
    handler.handle(logging.makeLogRecord({"levelno": 40, **parts}))
    handler.handle(logging.makeLogRecord({"levelno": 40, "msg": "the next"}))
    messages = [record["message"] for record in told(service)]
    assert "the next" == messages[-1]
    assert [] == [message for message in messages if len(message) > 20_000]


@pytest.mark.proves("LOG-004")
def test_an_exception_is_told_with_its_trace(log: logging.Logger) -> None:
    service = Service("thermo")
    log.addHandler(Handler(service, local=None))
    try:
        int("bad")
    except ValueError:
        log.exception("it failed")
    assert "ValueError: invalid literal" in told(service)[0]["fields"]["exception"]


@pytest.mark.proves("LOG-004")
def test_a_flood_from_threads_is_bounded_and_counted(log: logging.Logger) -> None:
    service = Service("thermo")
    handler = Handler(service, local=None)
    record = logging.makeLogRecord({"levelno": 40, "msg": "x"})
    flood = threading.Thread(target=lambda: [handler.handle(record) for _ in range(RECORDS_WAITING_MAX)])
    flood.start()
    for _ in range(10):
        handler.handle(record)
    flood.join()
    assert 10 == service.bus.dropped
    assert list(range(10_000 - 1_000 + 1, 10_000 + 1)) == [record["seq"] for record in told(service)]


@pytest.mark.proves("LOG-004")
def test_a_local_handler_that_hangs_holds_nobody_up(log: logging.Logger) -> None:
    class Stuck(Kept):
        gate = threading.Event()

        def emit(self, record: logging.LogRecord) -> None:
            super().emit(record)
            self.gate.wait(10)

    stuck = Stuck()
    handler = Handler(Service("thermo"), local=stuck)
    for number in range(RECORDS_WAITING_MAX + 100):
        handler.handle(logging.makeLogRecord({"levelno": 10, "msg": str(number)}))
    assert handler._local is not None
    assert (True, True) == (len(stuck.records) <= 1, 99 <= handler._local.dropped <= 100)
    stuck.gate.set()
    handler.close()


@given(
    st.text(max_size=20),
    st.dictionaries(st.text(max_size=5), st.one_of(st.none(), st.integers(), st.floats()), max_size=5),
)
@settings(max_examples=30)
def test_any_record_becomes_json(message: str, fields: dict[str, Any]) -> None:
    said: list[list[bytes]] = []
    service = Service("thermo")
    Handler(service, local=None).handle(logging.makeLogRecord({**fields, "msg": message, "levelno": 30, "args": ()}))
    service.bus.open(lambda: None, said.append)
    assert message.encode("utf-8", "replace").decode() == json.loads(said[0][1])["message"]

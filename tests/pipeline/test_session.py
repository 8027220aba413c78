"""The session: what it promises, and what it refuses (PIP-083)."""

import os
import signal
from pathlib import Path
from typing import Any, Final

import pytest
from py4j.protocol import MEMORY_COMMAND_NAME
from pyspark import java_gateway
from pyspark.errors import PySparkRuntimeError
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812  # as everybody writes it

from weft.base.errors import UserError, exit_code
from weft.pipeline.java import Java
from weft.pipeline.remote import is_settable
from weft.pipeline.session import (
    ARENAS,
    JAVA_OPTIONS,
    SMALL_HEAP,
    Options,
    _prepare_environment,
    _start,
    interrupt_kept,
    session,
    settings_of,
)

GARBAGE: Final = MEMORY_COMMAND_NAME
"""Begins what is said when Python has forgotten an object of the JVM, at any time."""


def test_ctrl_c_stays_with_the_program_that_has_a_handler_for_it() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    try:
        with interrupt_kept():
            signal.signal(signal.SIGINT, signal.default_int_handler)  # as PySpark does when a session starts
        signal.raise_signal(signal.SIGINT)
        assert [signal.SIGINT] == heard
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.proves("PIP-083")
def test_the_session_binds_loopback_keeps_utc_and_ansi_and_writes_no_log_of_events(spark: SparkSession) -> None:
    wanted = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.memory": "512m",
        "spark.ui.enabled": "false",
        "spark.eventLog.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.python.filterPushdown.enabled": "true",
        "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
        "spark.speculation": "false",
    }
    assert wanted == {key: spark.conf.get(key) for key in wanted}
    assert session() is spark


def test_what_is_set_in_a_session_of_a_server_can_be(spark: SparkSession) -> None:
    settings = [key for key in settings_of(Options()) if key.startswith("spark.sql.") and is_settable(key)]
    assert "spark.sql.ansi.enabled" in settings
    assert [] == [key for key in settings if not spark.conf.isModifiable(key)]


def test_a_java_that_is_killed_at_its_start_is_started_again_by_whoever_looks_after_the_driver(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """systemd does not start again what ends with 78: no Java is there."""

    def killed(*_: object) -> None:
        raise PySparkRuntimeError(errorClass="JAVA_GATEWAY_EXITED", messageParameters={})

    monkeypatch.setattr(java_gateway, "launch_gateway", killed)
    with pytest.raises(UserError) as ended:
        _start({}, Options(log=tmp_path / "spark.log"))
    assert 3 == exit_code(ended.value.code)


def test_a_column_costs_one_call_into_the_jvm(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer of a function that is known already; a few hundred columns are most of a small batch."""
    F.col("warm")
    said: list[str] = []
    client: Any = spark.sparkContext._gateway._gateway_client  # type: ignore[union-attr]  # a session has one
    send = client.send_command

    def noted(command: str, *rest: Any, **named: Any) -> Any:
        if not command.startswith(GARBAGE):
            said.append(command)
        return send(command, *rest, **named)

    monkeypatch.setattr(client, "send_command", noted)
    F.col("a")
    assert 1 == len(said), said


@pytest.mark.parametrize(
    "key,value",
    [
        ("spark.speculation", "true"),
        ("spark.sql.ansi.enabled", "false"),
        ("spark.sql.timestampType", "TIMESTAMP_NTZ"),
        ("spark.sql.session.timeZone", "Europe/Berlin"),
    ],
)
def test_settings_that_break_a_promise_are_refused_with_the_reason(key: str, value: str) -> None:
    with pytest.raises(UserError) as refused:
        settings_of(Options(settings={key: value}))
    assert "refused-setting" == refused.value.code
    assert key in refused.value.text
    assert settings_of(Options(settings={"spark.sql.ansi.enabled": "TRUE"}))


@pytest.mark.proves("PIP-083")
def test_how_much_java_takes_is_for_the_user_to_say(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("JAVA_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_IP", "SPARK_LAUNCHER_OPTS"):
        monkeypatch.setenv(name, "as it was")  # so that it is so again
    ours = settings_of(Options(jvm=("-Xms300m",)))[JAVA_OPTIONS].split()
    assert ours.index(SMALL_HEAP[0]) < ours.index("-Xms300m"), "of two, Java takes the last"
    assert "-Xms300m" == settings_of(Options(settings={JAVA_OPTIONS: "-Xms300m"}))[JAVA_OPTIONS]
    name, usual = ARENAS
    for given, wanted in (("8", "8"), (None, usual)):
        monkeypatch.setenv(name, given or "")
        if given is None:
            monkeypatch.delenv(name)
        _prepare_environment(Java(Path("/nowhere"), "17", "PATH"))
        assert wanted == os.environ[name]

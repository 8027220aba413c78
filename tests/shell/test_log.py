"""Log lines: one JSON object each, never a flood, never a terminal's command, never the end of a node."""

import errno
import json
import os
from typing import Any

import pytest

from weft.base.now import SECOND
from weft.shell.log import EQUAL_LINES_MAX, KINDS_MAX, Log


class Sink:
    def __init__(self, *, is_terminal: bool = False) -> None:
        self.written: list[bytes] = []
        self.mono = 0
        self.is_full = False
        self.log = Log("n1", self._take, mono_ns=lambda: self.mono, is_terminal=is_terminal)

    def _take(self, line: bytes) -> None:
        if self.is_full:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.written.append(line)

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.written]


@pytest.mark.proves("OBS-002")
def test_a_line_says_when_how_bad_what_and_who() -> None:
    sink = Sink()
    sink.log.write("warning", "carrier.parent-lost", {"why": "silent"})
    (line,) = sink.lines
    assert line.pop("ts").endswith("Z")
    assert {
        "level": "warning",
        "event": "carrier.parent-lost",
        "node": "n1",
        "fields": {"why": "silent"},
    } == line


@pytest.mark.proves("OPS-002", part="the journal of the system knows how bad a line is")
def test_a_line_for_the_journal_of_the_system_begins_with_its_priority(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []
    stderr = os.fstat(2)
    for stream in ("", "1:2", f"{stderr.st_dev}:{stderr.st_ino}"):
        monkeypatch.setenv("JOURNAL_STREAM", stream)
        log = Log("n1", written.append, is_terminal=False)
        for level in ("debug", "info", "warning", "error"):
            log.write(level, "x", {})
    assert [b'{"t'] * 8 + [b"<7>", b"<6>", b"<4>", b"<3>"] == [line[:3] for line in written]


@pytest.mark.proves("OBS-002")
def test_equal_lines_collapse_after_ten_in_ten_seconds_and_the_rest_is_told_in_one() -> None:
    sink = Sink()
    for _ in range(25):
        sink.log.write("warning", "x", {"why": "same"})
        sink.log.write("warning", "x", {"why": "other"}) if len(sink.written) == 1 else None
    assert 10 + 1 == len(sink.written)
    sink.mono = 10 * SECOND
    sink.log.settle()
    assert {"why": "same"} == sink.lines[-1]["fields"]
    assert 25 - 10 == sink.lines[-1]["repeated"] == sink.log.collapsed
    sink.log.write("warning", "x", {"why": "same"})
    assert 10 + 3 == len(sink.written)


def test_what_was_left_out_is_told_at_the_end_too() -> None:
    sink = Sink()
    for _ in range(EQUAL_LINES_MAX + 4):
        sink.log.write("info", "x", {})
    sink.log.close()
    assert 4 == sink.lines[-1]["repeated"]


def test_the_kinds_of_lines_that_are_remembered_are_bounded() -> None:
    sink = Sink()
    for number in range(KINDS_MAX + 50):
        sink.log.write("info", "x", {"n": number})
    assert 1_000 == len(sink.log._windows)
    assert 1_000 + 50 == len(sink.written)


@pytest.mark.proves("SEC-045", part="log lines on a terminal")
@pytest.mark.parametrize("is_terminal", [False, True])
def test_no_terminal_obeys_what_a_peer_said(is_terminal: bool) -> None:
    sink = Sink(is_terminal=is_terminal)
    sink.log.write("error", "carrier.child-refused", {"name": "\x1b[2J\x1b]0;owned\x07\x9b1m\nforged line"})
    (line,) = sink.written
    shown = line.decode().partition("child-refused")[2]
    assert shown.removesuffix("\n").isascii()
    assert shown.removesuffix("\n").isprintable()
    assert "owned" in shown


def test_a_log_on_a_full_disk_harms_nobody() -> None:
    sink = Sink()
    sink.is_full = True
    sink.log.write("info", "x", {})
    sink.is_full = False
    sink.log.write("info", "x", {})
    assert (1, 1) == (sink.log.unwritten, len(sink.written))

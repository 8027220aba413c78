"""No answer of a node leaves before its turn is synced, by the system calls of a whole node on loopback (FLT-031).

A plain child of the hop link sends one sample at a time, and waits until the root says that it holds it. libzmq says so
from a thread of its own, so all threads are traced. That a sync which is left out is seen is tried with a node whose
journal does not sync.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import pytest
import zmq

from tests.fabric.fabric import SETTINGS
from tests.interop.programs import needed
from tests.patience import PATIENCE_S
from weft.base.endpoints import LINK
from weft.cli.asking import try_status
from weft.shell.blocks import free_blocks
from weft.wire import hop

ANSWERS: Final = 100
ANSWER_MS: Final = 30_000
BYTES_SHOWN: Final = "16000"
CHILD: Final = b"order-proof-child"[:16]
RIGHT: Final = "import os; os.execv = stay; from weft.cli.main import main; main()"
STAY: Final = """
import runpy, sys
def stay(program, words):
    # `weft up` becomes the node by an exec, which would take the planted bug away
    sys.argv = words[2:]
    runpy.run_module(words[2], run_name="__main__", alter_sys=True)
"""
SLOW: Final = ("-e", "inject=fdatasync:delay_enter=500000:when=20+5")
"""From the twentieth on each fifth sync takes half a second longer."""

WRONG: Final = "from weft.shell.files import Files; Files.sync = lambda self, file: None; " + RIGHT
CALLS: Final = "trace=write,pwrite64,writev,pwritev,fdatasync,fsync,sendto,sendmsg,rename"
CALL: Final = re.compile(r"(?P<name>\w+)\(\d+<(?P<path>[^>]*)>(?P<rest>.*)")
ANSWER: Final = r"\244hack"


class Proof(NamedTuple):
    """What a trace tells."""

    answers: int
    early: int
    """Answers that left while something written to the journal was not synced."""


def told_by(trace: str) -> Proof:
    """Count answers, and those that left while a sample of the child was written and not synced.

    The node's own records do not count: an answer may leave while the next of them is on its way to the disk.
    """
    unsynced: set[str] = set()
    answers = early = 0
    for text in _calls(trace):
        call = CALL.search(text)
        if call is None:
            continue
        if call["path"].endswith(".seg"):
            if "sync" in call["name"]:
                unsynced.discard(call["path"])
            elif CHILD.decode() in text:
                unsynced.add(call["path"])
        elif call["name"] in ("sendto", "sendmsg"):
            answers += text.count(ANSWER)
            early += text.count(ANSWER) if unsynced else 0
    return Proof(answers, early)


def _calls(trace: str) -> Iterator[str]:
    """The calls in the order in which they count: a sync when it has ended, anything else when it begins."""
    begun: dict[str, str] = {}
    for line in trace.splitlines():
        thread, _, text = line.partition(" ")
        if text.endswith("<unfinished ...>"):
            begun[thread] = text
            if "sync(" not in text:
                yield text
        elif "resumed>" not in text or "sync(" in (text := begun.pop(thread, "")):
            yield text


def item(number: int) -> hop.HopItem:
    return hop.HopItem(mid=(CHILD, 1, number), type="weft.metric", via=(CHILD,), depth=0, ts=1)


def ask(port: int) -> int:
    """Say hello, and one sample after the other; how many the root has said that it holds."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as child:
        child.linger, child.rcvtimeo = 0, ANSWER_MS
        child.routing_id = b"\x01" + CHILD[1:]
        child.connect(f"tcp://127.0.0.1:{port + LINK}")
        child.send_multipart(
            hop.seal(hop.Hello(v=hop.VERSION, role="node", name="proof", id=CHILD, era=1, first=1, next=1))
        )
        assert isinstance(hop.decode(child.recv_multipart()), hop.Welcome)
        held = 0
        for number in range(1, ANSWERS + 1):
            child.send_multipart(hop.seal(hop.Hop(1, number, [item(number)], [b"[1]"])))
            while held < number:
                heard = hop.decode(child.recv_multipart())
                held = heard.upto if isinstance(heard, hop.Hack) and heard.era == 1 else held
        return held


def traced(program: str, place: Path, harm: Sequence[str] = ()) -> Proof:
    """A root under strace, asked and ended; harm is what strace does to its calls."""
    (port,) = free_blocks(1, 29_600 + os.getpid() % 20 * 20)
    text = SETTINGS.format(
        fleet=f"order-{os.getpid()}", name="root", level="root", parent="", port=port, beacon_port=port,
        state=place / "state", lake=place / "lake", more="",
    )  # fmt: skip
    file, trace = place / "root.toml", place / "trace"
    file.write_text(text, "utf-8")
    strace = [
        needed("strace"),
        "-f",
        "-y",
        "-s",
        BYTES_SHOWN,
        "-e",
        CALLS,
        "-e",
        "signal=none",
        *harm,
        "-o",
        str(trace),
    ]
    words = [*strace, sys.executable, "-c", STAY + program, "up", str(file)]
    node = subprocess.Popen(words, stderr=subprocess.PIPE, start_new_session=True)
    try:
        until_it_has_filters(port, node)
        assert ask(port) == ANSWERS
    finally:
        os.killpg(node.pid, signal.SIGTERM)  # strace itself does not hear it
        node.communicate(timeout=PATIENCE_S)
    return told_by(trace.read_text("utf-8", "replace"))


def until_it_has_filters(port: int, node: "subprocess.Popen[bytes]") -> None:
    """A node takes nothing before its configuration is in force, since that says how it filters."""
    ends_at = time.monotonic() + 60
    while (status := try_status(port)) is None or not status["cores"]["configuration"]["number"]:
        assert node.poll() is None, node.stderr and node.stderr.read()
        assert time.monotonic() < ends_at, "the node has no configuration"
        time.sleep(0.1)  # tidy: another process tells nobody; bounded above


@pytest.mark.proves("FLT-031")
def test_no_answer_leaves_before_the_record_it_answers_for_is_synced(tmp_path: Path) -> None:
    proof = traced(RIGHT, tmp_path)
    assert proof.answers >= 100
    assert 0 == proof.early


@pytest.mark.proves("FLT-019", part="a disk that is slow to sync: a node's answers wait for it")
def test_a_disk_that_is_slow_to_sync_makes_answers_late_and_none_early(tmp_path: Path) -> None:
    proof = traced(RIGHT, tmp_path, SLOW)
    assert proof.answers >= ANSWERS
    assert 0 == proof.early
    assert (tmp_path / "trace").read_text("utf-8", "replace").count("(DELAYED)") >= 10


@pytest.mark.proves("FLT-031")
def test_without_syncs_at_least_nine_answers_in_ten_are_seen_to_be_early(tmp_path: Path) -> None:
    proof = traced(WRONG, tmp_path)
    assert proof.answers >= 100
    assert proof.early >= 0.9 * proof.answers

"""A pipeline of five stages over lines of JSON: parse, two conditions, set a field, remove a field, write lines.

    scripts/bench-install
    .venv/bin/python -m bench.chains_pipeline [--messages 200000] [--rounds 5]

The same feeder sends the same records through TCP on loopback to each program; its time runs from its first byte to the
last line of output. Weft is a process that reads lines and walks each down a chain of its own filters: a filter for each
stage, and once more with both conditions in one filter and both changes in another. Beside it stand Debian's rsyslog and
syslog-ng with the same stages. fluent-bit and vector join if they are on the path.
"""

import argparse
import contextlib
import functools
import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from bench.peers.programs import await_port, demand, end, end_in_order, found, running, unpacked
from bench.peers.rounds import Goal, show, take_turns
from weft.base.mail import Mail
from weft.base.now import Now
from weft.base.records import Record
from weft.cores.chains.context import Context
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messages import ChainsSettings
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.parcel import OUT, Parcel
from weft.cores.chains.roster import Roster
from weft.cores.chains.settings import parse_filters
from weft.cores.chains.waiting import Waiting
from weft.cores.chains.walk import Walker

RSYSLOG_PORT, SYSLOG_NG_PORT = 15_514, 15_515
RECORDS: Final = 1_000
"""Different ones; they are fed over and over."""
CHUNK_LINES: Final = 1_000
PATIENCE_S: Final = 120.0
LOOK_S: Final = 0.002
WEFT, WEFT_TWO, RSYSLOG, SYSLOG_NG = "weft, four filters", "weft, two filters", "rsyslog", "syslog-ng"
PORTS: Final = {WEFT: 15_516, WEFT_TWO: 15_517}
SYSLOG_HEADER: Final = b"<13>1 2026-11-21T00:00:00Z h a - - - "
RSYSLOG_CONF: Final = """module(load="imptcp" threads="1")
module(load="mmjsonparse")
template(name="out" type="string" string="%$!all-json%\\n")
input(type="imptcp" port="15514" address="127.0.0.1" ruleset="chain")
ruleset(name="chain" queue.type="FixedArray" queue.size="100000") {{
  action(type="mmjsonparse" cookie="")
  if ($!value < 0) then stop
  if (not ($!name startswith "cpu.")) then stop
  set $!site = "north"; unset $!unit;
  action(type="omfile" file="{out}" template="out" ioBufferSize="64k" flushOnTXEnd="off" asyncWriting="on") }}
"""
SYSLOG_NG_CONF: Final = """@version: 3.35
options {{ keep-hostname(yes); use-dns(no); flush-lines(100); }};
source s {{ network(ip("127.0.0.1") port(15515) transport("tcp") flags(no-parse) log-iw-size(100000) max-connections(10)
    log-fetch-limit(1000)); }};
parser p {{ json-parser(prefix("j.")); }};
filter f1 {{ "${{j.value}}" >= 0 }}; filter f2 {{ match("^cpu\\\\." value("j.name")); }};
rewrite r1 {{ set("north", value("j.site")); }}; rewrite r2 {{ unset(value("j.unit")); }};
destination d {{ file("{out}" template("$(format-json --scope none j.*)\\n")); }};
log {{ source(s); parser(p); filter(f1); filter(f2); rewrite(r1); rewrite(r2); destination(d); flags(flow-control); }};
"""


TYPE: Final = "app.metric"
POSITIVE, CPU = {"value": {"ge": 0}}, {"name": {"prefix": "cpu."}}
SET, REMOVE = ["set", "site", "north"], ["remove", "unit"]
CHAINS: Final[dict[str, list[dict[str, Any]]]] = {
    WEFT: [
        {"name": "not-negative", "kind": "match", "where": POSITIVE},
        {"name": "of-the-cpu", "kind": "match", "where": CPU},
        {"name": "sited", "kind": "edit", "edits": [SET]},
        {"name": "unitless", "kind": "edit", "edits": [REMOVE]},
    ],
    WEFT_TWO: [
        {"name": "of-the-cpu", "kind": "match", "where": {**POSITIVE, **CPU}},
        {"name": "sited", "kind": "edit", "edits": [SET, REMOVE]},
    ],
}
BLOCK: Final = 1 << 18
NODE: Final = bytes(range(16))


def records() -> list[bytes]:
    """The records that all are fed with."""
    return [
        json.dumps(
            {
                "t": 1_763_800_000_000_000_000 + n,
                "node": f"a{n % 50}",
                "name": "cpu.user",
                "unit": "%",
                "value": n * 37 % 1_000,
            }
        ).encode()
        for n in range(RECORDS)
    ]


def feed(port: int, out: Path, count: int, prefix: bytes = b"") -> float:
    """Lines a second, from the first byte in to the last line out."""
    lines = [prefix + record + b"\n" for record in records()]
    chunk = b"".join(lines)
    assert not count % CHUNK_LINES
    before = lines_in(out, 0, 0)
    with socket.create_connection(("127.0.0.1", port)) as link:
        began = time.perf_counter()
        for _ in range(count // CHUNK_LINES):
            link.sendall(chunk)
        link.shutdown(socket.SHUT_WR)
        await_lines(out, before, count)
        return count / (time.perf_counter() - began)


def lines_in(out: Path, offset: int, known: int) -> tuple[int, int]:
    """Where the file ends now, and how many lines it has."""
    if not out.exists():
        return 0, 0
    with out.open("rb") as file:
        file.seek(offset)
        while block := file.read(1 << 20):
            known += block.count(b"\n")
            offset += len(block)
    return offset, known


def await_lines(out: Path, seen: tuple[int, int], count: int) -> None:
    """Wait until the file has grown by so many lines; TimeoutError."""
    wanted, ends_at = seen[1] + count, time.monotonic() + PATIENCE_S
    while seen[1] < wanted:
        if time.monotonic() > ends_at:
            raise TimeoutError(f"{out}: {seen[1]} of {wanted} lines")
        time.sleep(LOOK_S)
        seen = lines_in(out, *seen)


def check(out: Path) -> None:
    """What every peer is to have made of the records: no unit, a site, all else as it was."""
    with out.open("rb") as file:
        made = json.loads(file.readline())
    made = made.get("j", made)  # syslog-ng has put its fields under a prefix
    assert made["site"] == "north", made
    assert "unit" not in made, made
    assert made["name"] == "cpu.user", made


# The peers


@contextlib.contextmanager
def rsyslog(place: Path) -> Iterator[Callable[[int], float]]:
    """rsyslogd with the stages, and a way to feed it."""
    out = place / "rs.out"
    (place / "rs.conf").write_text(RSYSLOG_CONF.format(out=out))
    modules = unpacked("usr/lib/*/rsyslog")
    words = ["rsyslogd", "-n", "-f", str(place / "rs.conf"), "-i", str(place / "rs.pid")]
    with running([*words, *(["-M", str(modules)] if modules else [])], place, RSYSLOG_PORT):
        yield functools.partial(feed, RSYSLOG_PORT, out, prefix=SYSLOG_HEADER)
    check(out)


@contextlib.contextmanager
def syslog_ng(place: Path) -> Iterator[Callable[[int], float]]:
    """syslog-ng with the stages, and a way to feed it."""
    out = place / "sng.out"
    (place / "sng.conf").write_text(SYSLOG_NG_CONF.format(out=out))
    modules = unpacked("usr/lib/syslog-ng/3*")
    words = ["syslog-ng", "-F", "-f", "sng.conf", "--no-caps"]
    words += [
        f"--{what}={place / file}" for what, file in (("persist-file", "p"), ("pidfile", "pid"), ("control", "ctl"))
    ]
    with running([*words, *([f"--module-path={modules}"] if modules else [])], place, SYSLOG_NG_PORT):
        yield functools.partial(feed, SYSLOG_NG_PORT, out)
    check(out)


# What Debian 12 does not have: the same stages from stdin to a file. They join where they are on the path; absent here.


def fluent_bit(place: Path) -> list[str]:
    stages: list[tuple[str, ...]] = [
        ("-i", "stdin"),
        ("-F", "grep", "-m", "*", "-p", "exclude=value ^-"),
        ("-F", "grep", "-m", "*", "-p", r"regex=name ^cpu\."),
        ("-F", "modify", "-m", "*", "-p", "add=site north", "-p", "remove=unit"),
        ("-o", "file", "-m", "*", "-p", f"path={place}", "-p", "file=out", "-p", "format=plain"),
    ]
    return ["fluent-bit", "-q", "-f", "0.1", *(word for stage in stages for word in stage)]


def vector(place: Path) -> list[str]:
    (place / "vector.toml").write_text(VECTOR_TOML.format(place=place))
    return ["vector", "-q", "-c", str(place / "vector.toml")]


VECTOR_TOML: Final = """data_dir = "{place}"
[sources.lines]
type = "stdin"
[transforms.stages]
type = "remap"
inputs = ["lines"]
drop_on_abort = true
source = '''
. = object!(parse_json!(string!(.message)))
if to_float!(.value) < 0.0 {{ abort }}
if !starts_with(string!(.name), "cpu.") {{ abort }}
.site = "north"
del(.unit)
'''
[sinks.out]
type = "file"
inputs = ["stages"]
path = "{place}/out"
encoding.codec = "json"
"""
OTHERS: Final[dict[str, Callable[[Path], list[str]]]] = {"fluent-bit": fluent_bit, "vector": vector}


@contextlib.contextmanager
def by_stdin(place: Path, name: str) -> Iterator[Callable[[int], float]]:
    """A program that is on the path, started anew for each feeding."""
    yield functools.partial(pour, place, OTHERS[name](place))
    check(place / "out")


def pour(place: Path, command: list[str], count: int) -> float:
    """Lines a second, from the first byte into stdin to the last line out."""
    chunk, out = b"".join(record + b"\n" for record in records()), place / "out"
    before = lines_in(out, 0, 0)
    process = subprocess.Popen(command, cwd=place, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    assert process.stdin is not None
    try:
        began = time.perf_counter()
        for _ in range(count // CHUNK_LINES):
            process.stdin.write(chunk)
        process.stdin.close()
        await_lines(out, before, count)
        return count / (time.perf_counter() - began)
    finally:
        end(process)


# Ours


@contextlib.contextmanager
def weft(place: Path, which: str) -> Iterator[Callable[[int], float]]:
    """A process that walks lines down a chain of Weft's filters, and a way to feed it."""
    out, port = place / "weft.out", PORTS[which]
    process = subprocess.Popen([sys.executable, "-m", "bench.chains_pipeline", "serve", which, str(out)])
    try:
        await_port(port, process)
        yield functools.partial(feed, port, out)
    finally:
        end(process)
    check(out)


class Lines:
    """The bottom of the chain: what gets there is a line of a file."""

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self._lines: list[bytes] = []

    def deliver(self, parcel: Parcel, _: Now) -> None:
        self._lines.append(parcel.frames[0])

    def end(self, _: Parcel, why: str) -> None:
        assert why == "deleted", why

    def after(self, parcel: Parcel, made: list[Record]) -> None:
        raise AssertionError(f"{parcel.id} waits here, {len(made)}")

    def forget(self, parcel: Parcel, name: str) -> None:
        raise AssertionError(f"{parcel.id} is kept for {name}")

    def flush(self) -> None:
        self._out.write(b"\n".join([*self._lines, b""]))
        self._out.flush()
        self._lines = []


class Pipeline:
    """The filters on the chain of their type; each line is a message of its own."""

    def __init__(self, tables: list[dict[str, Any]], out: BinaryIO) -> None:
        specs, mistakes = parse_filters(
            [{"types": [TYPE], "place": place, **one} for place, one in enumerate(tables, 1)]
        )
        assert mistakes == [], mistakes
        context, roster = Context(ChainsSettings(), NODE, 1), Roster()
        for spec in specs:
            roster.attach(FilterLink(spec), spec.types)
        self._walker = Walker(context, roster, Waiting(60_000, 1, 1), MessageView)
        self._bottom = Lines(out)
        self._walker.found(self._bottom, self._bottom)
        self._number = 0

    def walk(self, lines: list[bytes]) -> None:
        now = Now(time.monotonic_ns(), time.time_ns())
        start, number, to = self._walker.start, self._number, ("PARENTSOF",)
        for line in lines:
            number += 1
            mail = Mail(origin=NODE, era=1, sequence=number, type=TYPE, frames=(line,), to=to, at=now.wall, fmt="json")
            start(Parcel(number, OUT, mail), now)
        self._number = number
        self._bottom.flush()


def serve(which: str, out: Path) -> None:
    """Take connections one after another, and walk their lines down the chain."""
    with out.open("wb") as file, socket.create_server(("127.0.0.1", PORTS[which])) as server:
        pipeline = Pipeline(CHAINS[which], file)
        while True:
            walk_all(pipeline, server.accept()[0])


def walk_all(pipeline: Pipeline, link: socket.socket) -> None:
    """All lines of one connection."""
    rest = b""
    while block := link.recv(BLOCK):
        *lines, rest = (rest + block).split(b"\n")
        pipeline.walk(lines)


def programs() -> dict[str, Callable[[Path], contextlib.AbstractContextManager[Callable[[int], float]]]]:
    """All that are here, by name; each makes a way to feed it out of an empty folder."""
    ours = {name: functools.partial(weft, which=name) for name in CHAINS}
    others = {name: functools.partial(by_stdin, name=name) for name in OTHERS if found(name)}
    return {**ours, RSYSLOG: rsyslog, SYSLOG_NG: syslog_ng, **others}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--messages", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    end_in_order()
    demand("rsyslogd", "syslog-ng")
    with tempfile.TemporaryDirectory() as place, contextlib.ExitStack() as stack:
        ways = {}
        for name, start in programs().items():
            folder = Path(place, name)
            folder.mkdir()
            way = stack.enter_context(start(folder))
            ways[name] = functools.partial(way, options.messages)
        figures = take_turns(ways, options.rounds)
    goals = [Goal(name, peer, times) for name in CHAINS for peer, times in ((RSYSLOG, 0.8), (SYSLOG_NG, 0.4))]
    show(f"P5: {options.messages:,} lines of JSON through five stages", figures, "lines/s", RSYSLOG, goals)
    for name in OTHERS:
        print(f"{name}: {'beside the others' if name in figures else 'absent'}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(sys.argv[2], Path(sys.argv[3]))
    else:
        main()

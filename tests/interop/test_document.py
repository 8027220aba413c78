"""Documents beside other stacks: Avahi, a ZRE peer, a node written from the seed alone, and libxml2's canonical form."""

import hashlib
import json
import os
import socket
import struct
import subprocess
import sys
import time
import uuid
from functools import partial
from pathlib import Path
from typing import Final

import pytest

from tests.house.requirements import ROOT
from tests.interop.document.machines import Hall, Scorer, pyre_python
from tests.interop.moat.peers import until
from tests.interop.netns import host_of
from tests.interop.programs import needed
from tests.patience import PATIENCE_S
from weft.base.chance import Chance
from weft.wire.document.xml import Node, canonical

LITERAL: Final = ROOT / "tests" / "document" / "literal.py"
PASS: Final = '<pass team="home" points="{}"/>'
ZRE_PORT: Final = 5670
AGREED_S: Final = 10.0  # JAM-041
SEEN_S, GONE_S = 3.0, 1.0  # to be seen in, and to be noticed as gone


def test_avahi_sees_a_session_with_port_and_texts_and_sees_it_go(tmp_path: Path) -> None:
    with Hall(tmp_path, 2) as hall:
        browser = hall.browser(2)
        scorer = hall.scorer(1)
        since = time.monotonic()
        own = str(uuid.UUID(scorer.asked("status")["uuid"]))
        port = scorer.endpoint.rpartition(":")[2]
        until(lambda: [line for line in browser.said().splitlines() if line.startswith("=;")], browser.said)
        seen_s = time.monotonic() - since
        [entry] = [line.split(";") for line in browser.said().splitlines() if line.startswith("=;")]
        assert ["eth0", "IPv4", "scorer-1", "_nsode_derbyos_com._tcp", "local"] == entry[1:6]
        assert [host_of(1), port] == entry[7:9]
        assert {f'"uuid={own}"', f'"boutid={hall.session}"', '"fold=1"'} == set(_texts(entry[9]))
        scorer.end()
        since = time.monotonic()
        until(lambda: any(line.startswith("-;") for line in browser.said().splitlines()), browser.said)
        gone_s = time.monotonic() - since
        assert (seen_s < SEEN_S, gone_s < GONE_S) == (True, True), (seen_s, gone_s)


def _texts(said: str) -> list[str]:
    return [f'"{text}"' for text in said.strip('"').split('" "')]


@pytest.mark.proves("PEE-020", "PEE-021")
def test_two_machines_that_know_nothing_of_each_other_edit_one_document(tmp_path: Path) -> None:
    with Hall(tmp_path, 2) as hall:
        one, two = hall.scorer(1), hall.scorer(2)
        for scorer in (one, two):
            with scorer.client() as client:
                client.add("period=1 jam=1", PASS.format(scorer.number))
        until(lambda: one.asked("digest") == two.asked("digest") != {}, lambda: one.said() + two.said())
        assert 2 == one.asked("digest")["operations"]
        assert "mdns" in {peer["how"] for scorer in (one, two) for peer in scorer.asked("peers")}


@pytest.mark.proves("PEE-021", "JAM-040")
def test_one_command_typed_on_each_of_two_machines_is_enough(tmp_path: Path) -> None:
    weft = (sys.executable, "-m", "weft.cli.main", "doc")
    join = ("join", f"Hall {os.getpid()}", "--listen", "0.0.0.0", "--open")
    states = [tmp_path / f"s{number}" for number in (1, 2)]

    def digest(state: Path) -> str:
        ran = subprocess.run(
            [*weft, "digest", "--json", "--node", str(state)], capture_output=True, timeout=PATIENCE_S, check=False
        )
        return ran.stdout.decode() if ran.returncode == 0 else ""

    with Hall(tmp_path, 2) as hall:
        logs = [hall.start(f"join{n}", n, *weft, *join, "--state", str(state)) for n, state in enumerate(states, 1)]
        for number, state in enumerate(states):
            until(partial(digest, state), logs[number].said)
            entry = ["add", "period=1", f"jam={number + 1}", PASS.format(number), "--node", str(state)]
            subprocess.run([*weft, *entry], capture_output=True, timeout=PATIENCE_S, check=True)
        until(lambda: digest(states[0]) == digest(states[1]), lambda: "".join(log.said() for log in logs))
        assert 2 == json.loads(digest(states[0]))["operations"]


@pytest.mark.parametrize("cut_s", [2.0, 12.0, 40.0], ids=["shorter than a beat", "evasive", "gone"])
def test_cable_between_machines_is_pulled_and_all_agree_ten_seconds_after_it_is_back(
    cut_s: float, tmp_path: Path
) -> None:
    with Hall(tmp_path, 3) as hall:
        scorers = [hall.scorer(number) for number in hall.net.numbers]
        until(lambda: all(len(_active(scorer)) == 2 for scorer in scorers), "everybody knows everybody")
        hall.net.split([1, 2], [3])
        entries = _entered(scorers, cut_s)
        hall.net.heal()
        since = time.monotonic()
        until(lambda: len({str(scorer.asked("digest")) for scorer in scorers}) == 1, scorers[2].said)
        assert 3 * entries == scorers[0].asked("digest")["operations"]
        assert time.monotonic() - since < AGREED_S


def _entered(scorers: list[Scorer], span_s: float) -> int:
    """How much each has entered in that time."""
    ends_at, entries = time.monotonic() + span_s, 0
    while time.monotonic() < ends_at:
        for scorer in scorers:
            with scorer.client() as client:
                client.add(f"period=1 jam={1 + entries % 5}", PASS.format(entries))
        entries += 1
        time.sleep(0.2)  # tidy: people enter things at their pace
    return entries


def _active(scorer: Scorer) -> list[str]:
    return [peer["uuid"] for peer in scorer.asked("peers") if peer["state"] == "ACTIVE"]


def test_zre_peer_that_is_shown_our_port_is_counted_and_nothing_else_happens(tmp_path: Path) -> None:
    with Hall(tmp_path, 2) as hall:
        scorer = hall.scorer(1, "mdns = false")
        port = int(scorer.endpoint.rpartition(":")[2])
        peer = hall.start("zre", 2, pyre_python(), str(ROOT / "tests/interop/document/pyre_peer.py"), "30")
        beacon = struct.pack("!3sB16sH", b"ZRE", 1, uuid.uuid4().bytes, port)

        async def shout() -> None:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
                made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
                made.bind((host_of(1), 0))
                made.sendto(beacon, ("10.77.0.255", ZRE_PORT))

        def is_counted() -> bool:
            hall.net.at(1).call(shout())
            return scorer.counts().get("mesh_rx_bad_identity", 0) > 0

        until(is_counted, lambda: peer.said() + scorer.said())
        assert ([], 0) == (scorer.asked("peers"), scorer.asked("digest")["operations"])
        assert peer.is_alive


@pytest.mark.proves("PEE-010")
def test_program_written_from_the_seed_alone_takes_part_in_a_real_nodes_session(tmp_path: Path) -> None:
    with Hall(tmp_path, 1) as hall:
        scorer = hall.scorer(1, "mdns = false")
        with scorer.client() as client:
            client.add("period=1 jam=1", PASS.format(4))
        edits = [word for points in range(20) for word in ("--edit", f'<pass team="away" points="{points}"/>')]
        words = [
            sys.executable,
            str(LITERAL),
            "--session",
            hall.session,
            "--host",
            host_of(1),
            "--peer",
            scorer.endpoint,
        ]
        ran = subprocess.run(
            hall.net.command(1, [*words, *edits]), capture_output=True, text=True, timeout=PATIENCE_S, check=False
        )
        assert 0 == ran.returncode, ran.stderr
        told = json.loads(ran.stdout)
        with scorer.client() as client:
            bodies = sorted(operation.body for operation in client.log())
        assert 21 == len(bodies)
        assert told["bodies"] == [body.decode() for body in bodies]
        assert told["heard"]["HELO"] <= 3, told
        assert told["heard"]["BOUT"] <= 3, told


@pytest.mark.proves("DOC-050")
def test_digest_is_that_of_what_libxml2_makes_canonical(tmp_path: Path) -> None:
    with Hall(tmp_path, 1) as hall:
        scorer = hall.scorer(1, "mdns = false")
        with scorer.client() as client:
            client.add(
                "period=2 jam=3", "<note b='&lt;&#9;&quot;' a=\"é &gt; '\">one &amp; two &gt; \n three</note>", by="Ä"
            )
            client.set("path=venue", text="Köln ]]> <Süd>")
            client.add("team=home", '<person number="7" name="&#13;x&#10;y"/>')
            digest, shown = client.digest()["digest"], client.show()
        words = [sys.executable, "-m", "weft.cli.main", "doc", "show", "--c14n", "--node", str(scorer.state)]
        ours = subprocess.run(words, capture_output=True, timeout=PATIENCE_S, check=False)
        assert 0 == ours.returncode, ours.stderr
        theirs = subprocess.run([needed("xmllint"), "--c14n", "-"], input=ours.stdout, capture_output=True, check=True)
        assert digest == hashlib.sha256(theirs.stdout).hexdigest()
        assert theirs.stdout == shown.encode()


NASTY: Final = ("a", "é", "\u2028", "&", "<", ">", '"', "'", "\t", "\n", "\r", " ", "]]>", "\U0001f600", "\x85")


def _tree(chance: Chance, depth: int = 0) -> Node:
    """Any element that a document can hold."""

    def text() -> str:
        return "".join([chance.choice(NASTY) for _ in range(chance.randint(0, 6))])

    names = [chance.choice("ABab_") + chance.choice(("", "1", "-x", ".y", "_z")) for _ in range(4)]
    node = Node(names[0], {name: text() for name in names[1:]}, text())
    if depth < 4:
        node.children.extend(_tree(chance, depth + 1) for _ in range(chance.randint(0, 3)))
    return node


@pytest.mark.proves("DOC-050")
def test_canonical_form_of_any_tree_is_that_of_libxml2() -> None:
    chance = Chance("canonical")
    for _ in range(100):
        ours = canonical(_tree(chance))
        theirs = subprocess.run([needed("xmllint"), "--c14n", "-"], input=ours, capture_output=True, check=True)
        assert theirs.stdout == ours

"""A node that somebody wrote who has read the seed and nothing else: no view in its BEAT, no pace, no hold-off.

It takes the seed at its word wherever a word can be taken so. Each HELO is answered with a HELO and each BOUT with a
BOUT, whoever spoke first; a PEER goes to all others as soon as a HELO comes; what a GSIP shows to be missing is sent at
once and whole. Nothing of Weft is imported here.

    python literal.py --session NAME [--host HOST] [--peer ENDPOINT]... [--edit XML]... [--seconds N]

It prints a line of JSON per message that it hears, and at its end the bodies that it holds.
"""

import argparse
import json
import time
import uuid
import xml.etree.ElementTree as ET
from collections import Counter
from typing import Final

import zmq

PORTS: Final = (0xC000, 0xFFFF)
HWM: Final = 3_000
Socket = zmq.Socket[bytes]


class Other:
    """A row of the table of peers."""

    def __init__(self, endpoint: str, dealer: Socket) -> None:
        self.endpoint, self.dealer = endpoint, dealer
        self.uuid = b""
        self.is_matched = False
        self.knows: dict[str, int] = {}
        """Source: latest sequence number that it is known to have seen."""


class Literal:
    """One NSOde."""

    def __init__(self, context: "zmq.Context[Socket]", session: str, host: str = "127.0.0.1") -> None:
        self.session, self.context = session, context
        self.uuid = uuid.uuid4()
        while not self.uuid.bytes[0]:  # ZeroMQ keeps such identities for itself
            self.uuid = uuid.uuid4()
        self.source = str(self.uuid)
        self.router = context.socket(zmq.ROUTER)
        self.router.setsockopt(zmq.LINGER, 0)
        port = self.router.bind_to_random_port(f"tcp://{host}", *PORTS)
        self.endpoint = f"{host}:{port}"
        self.others: dict[str, Other] = {}
        """By address and port."""
        self.log: dict[str, dict[int, bytes]] = {self.source: {}}
        self.offset = 0.0
        self.answers_always = True
        """Two such nodes answer each other for ever; who has tried that answers each peer once."""
        self.chats: list[str] = []
        self.heard: Counter[str] = Counter()
        self.said: Counter[str] = Counter()

    # Peers

    def discover(self, endpoint: str) -> Other:
        """A new peer, by hand, by PEER or by HELO: connect, and say HELO immediately."""
        dealer = self.context.socket(zmq.DEALER)
        for option, value in {zmq.LINGER: 200, zmq.SNDHWM: HWM, zmq.SNDTIMEO: 0}.items():
            dealer.setsockopt(option, value)
        dealer.setsockopt(zmq.IDENTITY, self.uuid.bytes)
        dealer.connect(f"tcp://{endpoint}")
        other = self.others[endpoint] = Other(endpoint, dealer)
        self.say(other, "HELO", self.endpoint)
        return other

    def say(self, other: Other, word: str, body: str | bytes = "") -> None:
        """Type and body: the ROUTER puts the sender in front."""
        try:
            other.dealer.send_multipart(
                [word.encode(), body if isinstance(body, bytes) else body.encode()], zmq.NOBLOCK
            )
        except zmq.Again:
            self.drop(other)
            return
        self.said[word] += 1

    def drop(self, other: Other) -> None:
        """Remove the row."""
        self.others.pop(other.endpoint, None)
        other.dealer.close()

    def turn(self) -> None:
        """All messages that are there."""
        while True:
            try:
                sender, word, body = self.router.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self.heard[word.decode()] += 1
            self.hear(sender, word.decode(), body)

    def hear(self, sender: bytes, word: str, body: bytes) -> None:
        """Until HELO, everything else of a sender is ignored."""
        other = next((one for one in self.others.values() if one.uuid == sender), None)
        if word == "HELO":
            self.hear_helo(other, sender, body.decode())
        elif other is not None:
            getattr(self, f"hear_{word.lower()}")(other, body)

    def hear_helo(self, other: Other | None, sender: bytes, endpoint: str) -> None:
        """Add it to the table, say HELO, BOUT and GSIP, and PEER to all others."""
        is_new = other is None
        if not (is_new or self.answers_always):
            return
        other = other or self.others.get(endpoint)
        if other is None:
            other = self.discover(endpoint)
        else:
            self.say(other, "HELO", self.endpoint)
        other.uuid = sender
        self.say(other, "BOUT", self.session)
        self.say(other, "GSIP", f"{uuid.UUID(bytes=sender)} {self.latest(str(uuid.UUID(bytes=sender)))}")
        for third in list(self.others.values()):
            if is_new and third is not other:
                self.say(third, "PEER", endpoint)

    def hear_bout(self, other: Other, body: bytes) -> None:
        """It must be answered; who is of another bout is closed."""
        if body.decode() != self.session:
            self.say(other, "GBYE", "")
            self.drop(other)
            return
        if self.answers_always:
            self.say(other, "BOUT", self.session)
        if not other.is_matched:
            other.is_matched = True
            self.gossip(other)

    def hear_peer(self, _: Other, body: bytes) -> None:
        """Connect, if there is no peer with that address and port."""
        endpoint = body.decode()
        if endpoint not in self.others and endpoint != self.endpoint:
            self.discover(endpoint)

    def hear_gbye(self, other: Other, _: bytes) -> None:
        """Remove it from the list of known peers."""
        self.drop(other)

    def hear_chat(self, _: Other, body: bytes) -> None:
        """Display it."""
        self.chats.append(body.decode())

    def hear_beat(self, _: Other, __: bytes) -> None:
        """Its body is currently undefined."""

    def hear_time(self, _: Other, body: bytes) -> None:
        """Who joins takes the time of the other one if it has no other peers."""
        if body and len(self.others) == 1:
            self.offset = float(body) - time.time()

    # The audit log

    def latest(self, source: str) -> int:
        """The end of what there is without gaps."""
        held, number = self.log.get(source, {}), 0
        while number + 1 in held:
            number += 1
        return number

    def bodies(self) -> set[bytes]:
        """All that is held."""
        return {body for held in self.log.values() for body in held.values()}

    def edit(self, verb: str, reference: dict[str, str], payload: str = "") -> bytes:
        """Record an event of ours, and send it to all peers."""
        number = len(self.log[self.source]) + 1
        stamps = {
            "source": self.source,
            "timestamp": repr(time.time() + self.offset),
            "sequence": str(number),
        }
        root = ET.fromstring(f"<{verb}>{payload}</{verb}>")
        root.attrib = {**stamps, **reference}
        body = ET.tostring(root)
        self.log[self.source][number] = body
        for other in self.others.values():
            if other.is_matched:
                self.say(other, "XMSG", body)
        return body

    def hear_xmsg(self, other: Other, body: bytes) -> None:
        """Keep it; a jump in its number shows that some are missing, and who sent it has all up to there."""
        root = ET.fromstring(body)
        source, number = root.attrib["source"], int(root.attrib["sequence"])
        before = self.latest(source)
        self.log.setdefault(source, {})[number] = body
        self.note(other, source, number)
        if number > before + 1:
            self.say(self.talked_about(source) or other, "GSIP", f"{source} {before}")

    def hear_gsip(self, other: Other, body: bytes) -> None:
        """More than ours: ask the talked about one. Less: send everything that is missing."""
        source, word = body.decode().split()
        theirs, ours = int(word), self.latest(source)
        self.note(other, source, theirs)
        if theirs > ours:
            self.say(self.talked_about(source) or other, "GSIP", f"{source} {ours}")
        for number in range(theirs + 1, ours + 1):
            self.say(other, "XMSG", self.log[source][number])

    def gossip(self, other: Other) -> None:
        """The most recent numbers of all sources but its own, unless it is known to have them."""
        for source in self.log:
            if source != str(uuid.UUID(bytes=other.uuid)) and other.knows.get(source, -1) < self.latest(source):
                self.say(other, "GSIP", f"{source} {self.latest(source)}")

    def periodically(self) -> None:
        """Gossip, and show that we are alive."""
        for other in list(self.others.values()):
            if other.is_matched:
                self.gossip(other)
                self.say(other, "BEAT")

    def note(self, other: Other, source: str, number: int) -> None:
        """It has seen all up to there."""
        other.knows[source] = max(number, other.knows.get(source, 0))

    def talked_about(self, source: str) -> Other | None:
        """The peer whose events these are."""
        return next((one for one in self.others.values() if one.uuid == uuid.UUID(source).bytes), None)

    def close(self) -> None:
        """Say goodbye to all."""
        for other in list(self.others.values()):
            self.say(other, "GBYE", "")
        self.die()

    def die(self) -> None:
        """Without a word."""
        for other in list(self.others.values()):
            self.drop(other)
        self.router.close()


def main() -> None:
    """Take part for a while."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--session", default="")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--peer", action="append", default=[])
    parser.add_argument("--edit", action="append", default=[])
    parser.add_argument("--seconds", type=float, default=5.0)
    asked = parser.parse_args()
    node = Literal(zmq.Context(), asked.session, asked.host)
    for endpoint in asked.peer:
        node.discover(endpoint)
    for payload in asked.edit:
        node.edit("add", {"period": "1", "jam": "1"}, payload)
    ends_at, gossips_at = time.monotonic() + asked.seconds, time.monotonic() + 2.0
    while time.monotonic() < ends_at:
        node.router.poll(50)
        node.turn()
        if time.monotonic() > gossips_at:
            gossips_at += 2.0
            node.periodically()
    print(json.dumps({"heard": node.heard, "said": node.said, "bodies": sorted(map(bytes.decode, node.bodies()))}))  # noqa: T201  # a program
    node.close()


if __name__ == "__main__":
    main()

"""Port +6: any bytes of any connection get one answer of HTTP or none, and an order only what its core answers (SEC-046)."""

import asyncio
from collections.abc import Iterable
from typing import Any

from fuzz.house.choices import Choices
from fuzz.house.running import outcomes, run
from fuzz.house.vectors import hostile
from weft.shell.http.gate import Gate
from weft.shell.http.messages import Response, Route
from weft.shell.http.server import Server
from weft.shell.orders import ORDER, ORDERS, Desk

PEERS = ("127.0.0.1", "10.0.0.9", "::1", "::ffff:127.0.0.1", "fe80::1%eth0", "")
STATUSES = frozenset((200, 400, 403, 404, 405, 409, 413, 415, 421, 431, 501, 503, 504))
HEAD = b"POST /order HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


class _Writer:
    """What an answer is written to."""

    def __init__(self, peer: str) -> None:
        self.written, self._peer, self.transport = b"", (peer, 1), self

    def write(self, data: bytes) -> None:
        """Note it."""
        self.written += data

    def get_extra_info(self, _: str) -> Any:
        """Who is there."""
        return self._peer

    async def drain(self) -> None:
        """All is written at once."""

    async def wait_closed(self) -> None:
        """It is closed at once."""

    def close(self) -> None:
        """Nothing is open."""

    abort = close


class _Place:
    """A server whose cores answer at once."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.desk = Desk(self._order, {row.core for row in ORDERS.values()})
        shown = Route(lambda request: Response(200, "text/plain", request.query.encode()))
        self.http = Server({"/status": shown, ORDER: self.desk.route()}, Gate(is_open=True))

    def _order(self, core: str, order: Any) -> None:
        assert core
        self.loop.call_soon(self.desk.reply, order.ticket, {"core": core, "order": repr(order)[:100]})

    async def ask(self, peer: str, data: bytes) -> bytes:
        """One connection, which ends behind the data."""
        reader, writer = asyncio.StreamReader(), _Writer(peer)
        reader.feed_data(data)
        reader.feed_eof()
        await self.http._connection(reader, writer)  # type: ignore[arg-type]  # a double of the writer
        return writer.written


PLACE = _Place()


def one(data: bytes) -> None:
    """The first byte says from where."""
    peer = Choices(data).pick(PEERS)
    _answered(PLACE.loop.run_until_complete(PLACE.ask(peer, data[1:])))
    page = PLACE.loop.run_until_complete(PLACE.desk.take(data[1:]))
    outcomes.add(("order", page.body[:60].decode("utf-8", "replace")))
    assert page.status in (200, 400), page


def _answered(answer: bytes) -> None:
    if not answer:
        return None
    first, _, rest = answer.partition(b"\r\n")
    if first == b"HTTP/1.1 100 ":
        return _answered(rest.partition(b"\r\n")[2])
    status = int(first.split(b" ")[1])
    outcomes.add(("status", str(status)))
    assert status in STATUSES, first
    assert answer.count(b"content-security-policy") == 1, answer
    return None


def seeds() -> Iterable[bytes]:
    """Pages, orders of each kind, and what is neither."""
    yield b"\0GET /status?ready=1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    yield b"\1HEAD /status HTTP/1.0\r\n\r\n"
    bodies = [
        b'{"order":"set","key":"/CONFIG/web/a","value":"1s","ttl_s":2.5,"if_number":0,"ack":"quorum"}',
        b'{"order":"delete","key":"/CONFIG/web/a"}',
        b'{"order":"load","pairs":{"/CONFIG/a":{"x":[1]}},"prefixes":["/CONFIG/"]}',
        b'{"order":"get","key":"/CONFIG/web/a"}',
        b'{"order":"list","subtree":"/CONFIG/","count":2,"after":"x"}',
        b'{"order":"rollback","number":7}',
        b'{"order":"store-found","value":"c0"}',
        b'{"order":"store-found","value":"zz"}',
        b'{"order":"store-restore","number":-1}',
        b'{"order":"store-deleters","nodes":["a"]}',
        *(b'{"order":"%s"}' % name.encode() for name in ORDERS),
        *(b'{"order":"set","key":"k","value":%s}' % text for text in hostile("json", "config-json")),
        *hostile("json"),
        b'{"order":"\\ud800"}',
    ]
    for body in bodies:
        yield b"\0" + body
    for body in bodies[:3]:
        yield b"\0" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
        yield b"\1" + HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body
    yield b"\0" + HEAD + b"Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n3\r\n{}}\r\n0\r\n\r\n"
    yield b"\0" + HEAD + b"Origin: http://evil\r\nContent-Length: 2\r\n\r\n{}"
    yield b"\0" + HEAD + b"Content-Length: 99999999999\r\n\r\n{}"


if __name__ == "__main__":
    run(one)

"""What a browser says and hears, by asyncio and h11."""

import asyncio
import json
from typing import Any, NamedTuple, Self

import h11

from tests.patience import PATIENCE_S


class Heard(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def ask(port: int, method: str, path: str, body: bytes, headers: dict[str, str]) -> Heard:
    """One request. Names of headers with `_` for `-`; an empty one is not sent."""
    async with asyncio.timeout(PATIENCE_S):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        told = {"host": f"127.0.0.1:{port}", "content-length": str(len(body))}
        told |= {name.replace("_", "-"): value for name, value in headers.items()}
        lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in told.items() if value)]
        writer.write("\r\n".join([*lines, "", ""]).encode("latin-1") + body)
        raw = await reader.read()
        writer.close()
        await writer.wait_closed()
    return _heard(method, raw)


def _heard(method: str, raw: bytes) -> Heard:
    parser = h11.Connection(h11.CLIENT)
    parser.send(h11.Request(method=method, target="/", headers=[("host", "x")]))
    parser.send(h11.EndOfMessage())
    parser.receive_data(raw)
    parser.receive_data(b"")
    response = parser.next_event()
    assert isinstance(response, h11.Response)
    pieces = []
    while isinstance(event := parser.next_event(), h11.Data):
        pieces.append(bytes(event.data))
    headers = {name.decode(): value.decode() for name, value in response.headers}
    return Heard(response.status_code, headers, b"".join(pieces))


class Event(NamedTuple):
    id: str
    kind: str
    data: str

    @property
    def state(self) -> Any:
        return json.loads(self.data)


class Viewer:
    """Listens to `/events`; `async with`."""

    def __init__(self, port: int, path: str = "/events", *, room: int = 0) -> None:
        self._port, self._path, self._room = port, path, room
        self._parser = h11.Connection(h11.CLIENT)
        self._text = ""
        self.reader: Any = None

    async def __aenter__(self) -> Self:
        self.reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port, limit=self._room or 1 << 16)
        request = h11.Request(method="GET", target=self._path, headers=[("host", f"127.0.0.1:{self._port}")])
        self._writer.write(self._parser.send(request) or b"")
        self._parser.send(h11.EndOfMessage())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def next(self) -> Event:
        """The next event that is a state."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                while "\n\n" not in self._text:
                    await self._more()
                block, _, self._text = self._text.partition("\n\n")
                fields = dict(line.partition(": ")[::2] for line in block.splitlines())
                if "data" in fields and fields.get("event", "message") == "message":
                    return Event(fields.get("id", ""), "message", fields["data"])

    async def until(self, holds: Any) -> Any:
        """The first state for which something holds."""
        while not holds(state := (await self.next()).state):
            pass
        return state

    async def _more(self) -> None:
        event = self._parser.next_event()
        if event is h11.NEED_DATA:
            data = await self.reader.read(1 << 16)
            assert data, "the board has ended the stream"
            self._parser.receive_data(data)
        elif isinstance(event, h11.Data):
            self._text += bytes(event.data).decode()

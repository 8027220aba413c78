"""A client of the store in a socket and MessagePack and nothing else: it writes, watches, and says what it heard."""

import io
import json
import socket
import sys
from typing import Any

import msgpack


class Connection:
    def __init__(self) -> None:
        self.socket = socket.create_connection(("127.0.0.1", int(sys.argv[1])), 10)
        self.unpacker, self.seq = msgpack.Unpacker(), 0
        self.greeting = self.read()

    def read(self) -> dict[str, Any]:
        while (message := next(self.unpacker, None)) is None:
            self.unpacker.feed(self.socket.recv(65_536) or sys.exit("the end"))
        return dict(message)

    def ask(self, action: str, *path: str, **fields: Any) -> dict[str, Any]:
        self.seq, packed = self.seq + 1, msgpack.ExtType(3, b"".join(map(msgpack.packb, path)))
        self.socket.sendall(msgpack.packb({"seq": self.seq, "action": action, "path": packed, **fields}))
        return self.read()


one, two, bad = Connection(), Connection(), Connection()
bad.socket.sendall(b"GET / HTTP/1.0\r\n\r\n")
talk = [one.greeting["node"], one.ask("get_value")["value"], one.ask("set_value", "a", value=5)["changed"]]
talk += [one.ask("get_value", "a")["value"], one.ask("set_value", "a", value=6, chain=None)["etype"]]
talk += [one.ask("nonsense")["etype"], bad.read()["etype"], two.ask("watch", "a", fetch=True)["state"]]
asked = [one.ask("set_value", "a", *rest, value=value) for *rest, value in (["x", 1], ["x", "y", None], ["x", "y", 2])]
seen, path = [], list[str]()
for item in (item for item in [two.read() for _ in range(2 + len(asked))] if "path" in item):
    path[item["depth"] :] = msgpack.Unpacker(io.BytesIO(item["path"].data))
    seen.append([".".join(path), item["value"]])
json.dump({"talk": talk, "seen": seen}, sys.stdout)

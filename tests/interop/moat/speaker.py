"""A client of real MoaT-KV servers, as small as it can be, with nothing of Weft in it: a second opinion on the protocol."""

import socket
import struct
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple, Self

import msgpack

from tests.patience import PATIENCE_S

PATH, BIG_INT = 3, 2


class Path(tuple[Any, ...]):
    """A path of the store, as distinct from a list."""

    __slots__ = ()

    @classmethod
    def of(cls, text: str) -> Self:
        """Plain names with dots between."""
        return cls(text.split(".") if text else ())


class Gone:
    """The value of a tombstone."""

    def __repr__(self) -> str:
        return "GONE"


GONE: Final = Gone()


class Entry(NamedTuple):
    value: Any
    head: tuple[str, int]
    chain: tuple[tuple[str, int], ...]
    tock: int


Whole = dict[Path, tuple[Any, tuple[str, int]]]
"""Value and head by path."""


def living(whole: Whole) -> Whole:
    """Without tombstones: real servers forget them one by one, whenever they tell one another what is deleted."""
    return {path: held for path, held in whole.items() if held[0] is not GONE}


class RefusedError(Exception):
    """The server's answer is an error; its text, and the code that Weft's servers add."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__(answer["error"])
        self.text, self.code = str(answer["error"]), answer.get("etype")


def packed(item: Any) -> bytes:
    return bytes(msgpack.packb(item, default=_extension, strict_types=True))


def _extension(item: Any) -> Any:
    if isinstance(item, Path):
        return msgpack.ExtType(PATH, b"".join(map(packed, item)))
    if isinstance(item, int):
        return msgpack.ExtType(BIG_INT, item.to_bytes((item.bit_length() + 7) // 8, "big"))
    raise TypeError(repr(item))


def _hook(code: int, data: bytes) -> Any:
    if code == PATH:
        return Path(unpacker(data))
    return int.from_bytes(data, "big") if code == BIG_INT else msgpack.ExtType(code, data)


def unpacker(data: bytes = b"") -> Any:
    made = msgpack.Unpacker(ext_hook=_hook, strict_map_key=False, use_list=True, max_buffer_size=64 << 20)
    made.feed(data)
    return made


class Speaker:
    """One connection to a client port."""

    def __init__(self, port: int, patience_s: float = PATIENCE_S) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=patience_s)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._incoming = unpacker()
        self._seq = 0
        try:
            self.greeting = self._next()
        except OSError:
            self._socket.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    # Requests

    def send(self, action: str, **fields: Any) -> int:
        """Ask without waiting; the number of the request."""
        self._seq += 1
        self._socket.sendall(packed({"seq": self._seq, "action": action, **fields}))
        return self._seq

    def ask(self, action: str, **fields: Any) -> dict[str, Any]:
        """One request, one answer; RefusedError."""
        return self.answers([self.send(action, **fields)])[0]

    def answers(self, numbers: Iterable[int]) -> list[dict[str, Any]]:
        """The answers to requests that were sent, in the order of the numbers; RefusedError."""
        wanted = list(numbers)
        heard: dict[int, dict[str, Any]] = {}
        while len(heard) < len(wanted):
            answer = self._next()
            if answer["seq"] in wanted:
                heard[answer["seq"]] = _good(answer)
        return [heard[number] for number in wanted]

    def stream(self, action: str, **fields: Any) -> Iterator[dict[str, Any]]:
        """The items of a stream, with their full paths, until it ends."""
        number, path = self.send(action, **fields), Path()
        while True:
            item = self._next()
            if item["seq"] != number:
                continue
            _good(item)
            if "path" in item:
                item["path"] = path = Path((*path[: item.pop("depth", 0)], *item["path"]))
                yield item
            elif item.get("state") == "end":
                return
            elif item.get("state") == "uptodate":
                yield item

    # What tests want

    def set(self, path: str, value: Any, **fields: Any) -> dict[str, Any]:
        return self.ask("set_value", path=Path.of(path), value=value, **fields)

    def delete(self, path: str, **fields: Any) -> dict[str, Any]:
        return self.ask("delete_value", path=Path.of(path), **fields)

    def get(self, path: str) -> Any:
        return self.ask("get_value", path=Path.of(path), nchain=1).get("value", GONE)

    def set_all(self, pairs: Iterable[tuple[str, Any]], open_max: int = 50) -> list[dict[str, Any]]:
        """Many writes, some of them open at a time; deletions where the value is GONE."""
        sent: list[int] = []
        answers: list[dict[str, Any]] = []
        for path, value in pairs:
            more = {} if value is GONE else {"value": value}
            action = "delete_value" if value is GONE else "set_value"
            sent.append(self.send(action, path=Path.of(path), nchain=1, **more))
            if len(sent) == open_max:
                answers += self.answers(sent)
                sent = []
        return answers + self.answers(sent)

    def tree(self, at: str = "", action: str = "get_tree") -> dict[Path, Entry]:
        """All entries below a path, tombstones too."""
        root = Path.of(at)
        found: dict[Path, Entry] = {}
        for item in self.stream(action, path=root, nchain=-1, empty=True):
            chain = tuple(links(item.get("chain")))
            if not chain:
                continue  # nothing was ever written there, but below
            found[Path((*root, *item["path"]))] = Entry(item.get("value", GONE), chain[0], chain, item["tock"])
        return found

    def whole(self) -> Whole:
        """Value and head of every entry, the meta tree's too; floats as coarse as the newest servers send them."""
        plain, meta = self.tree(), self.tree(action="get_tree_internal")
        every = plain | {Path((None, *path)): entry for path, entry in meta.items()}
        return {path: (coarse(entry.value), entry.head) for path, entry in every.items() if entry.head[0]}

    def missing(self) -> Any:
        """What the server knows it has not heard."""
        return self.ask("get_state", missing=True).get("missing")

    def _next(self) -> dict[str, Any]:
        while True:
            for item in self._incoming:
                assert isinstance(item, dict), item
                return item
            data = self._socket.recv(1 << 16)
            if not data:
                raise ConnectionError("the server has closed the connection")
            self._incoming.feed(data)


def _good(answer: dict[str, Any]) -> dict[str, Any]:
    if "error" in answer:
        raise RefusedError(answer)
    return answer


def links(chain: dict[str, Any] | None) -> Iterator[tuple[str, int]]:
    """The links of a chain, newest first."""
    while chain is not None:
        yield chain["node"], chain["tick"]
        chain = chain.get("prev")


def ticks_of(ranges: list[Any]) -> Iterator[int]:
    """The numbers that ranges name."""
    for one in ranges:
        yield from (one,) if isinstance(one, int) else range(*one)


def coarse(value: Any) -> Any:
    """A value with its floats as four bytes hold them."""
    if isinstance(value, float):
        return struct.unpack(">f", struct.pack(">f", value))[0]
    if isinstance(value, list):
        return [coarse(item) for item in value]
    if isinstance(value, dict):
        return {key: coarse(item) for key, item in value.items()}
    return value

"""Two more plain clients: one watches a store, one replaces values of the configuration if they have not changed."""

import http.client
import json
from typing import Any, Final

from weft.torture import limits
from weft.torture.book import Book
from weft.torture.clients import Away, Client, Machine, StoreLink, ask

SHARED: Final = "/app/shared/"
KEYS: Final = 3
"""The shared keys: so few that all clients replace each other's values."""


class Watcher(Client):
    """Watches all entries that clients write into the store of its node; after a reconnect it starts anew."""

    protocol = "store"

    def __init__(self, at: Machine, book: Book, seed: str) -> None:
        super().__init__(at, book, seed)
        self.seen: dict[str, Any] = {}
        """The entries as the watcher has seen them."""

    @property
    def title(self) -> str:
        """Its name in the history."""
        return f"watcher at {self.at.name}"

    def turn(self) -> None:
        link = StoreLink(self.at)
        try:
            self._watch(link)
        finally:
            link.close()

    def _watch(self, link: StoreLink) -> None:
        found: dict[str, Any] = {}
        for key, value in link.watch("t"):
            if self.is_over.is_set():
                return
            if not key:
                self.seen = found
                continue
            self.book.note(self.title, "ok", "saw", [self.protocol, key, value])
            if value is None:
                found.pop(key, None)
            else:
                found[key] = value


class Register(Client):
    """Replaces shared values, each only if it has not changed since it was read, at its node while that is the root."""

    protocol = "registers"

    def turn(self) -> None:
        while self.writes and not self.is_over.is_set():
            status, answer = ask(self.at, "/status", patience_s=2.0)
            if status != http.HTTPStatus.OK or answer.get("level") != "root":
                raise Away("no root")
            self._replace(f"{SHARED}{self.chance.randrange(KEYS)}")
        self.is_over.wait(limits.LOOK_S)

    def _replace(self, key: str) -> None:
        number, value = registers(self.at).get(key, (0, None))
        call, wanted = next(self.numbers), f"{self.at.name} {next(self.numbers)}"
        self.book.note("", "invoke", "call", [self.name, call, key, ["swap", value, wanted]])
        order = {"order": "set", "key": key, "value": wanted, "if_number": number, "who": "torture", "ack": "quorum"}
        status, answer = ask(self.at, "/order", order, patience_s=40.0)
        if status == http.HTTPStatus.CONFLICT:
            self.book.note("", "fail", "call", [self.name, call])
        elif status == http.HTTPStatus.OK and answer.get("is_confirmed"):
            self.book.note("", "ok", "call", [self.name, call, True])
        self.pause()


def registers(at: Machine) -> dict[str, tuple[int, Any]]:
    """Number and value of each shared key, according to a node."""
    status, answer = ask(at, "/order", {"order": "list", "subtree": SHARED, "count": KEYS})
    if status != http.HTTPStatus.OK:
        raise Away(str(answer))
    return {
        key: (number, json.loads(value) if isinstance(value, str) else value) for key, number, value in answer["pairs"]
    }

"""`weft.doc.SyncClient`: the synchronous client of documents, for scripts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from weft.client.doc.client import Client, Side
from weft.client.doc.finding import Node
from weft.client.doc.limits import TIMEOUT_S
from weft.client.doc.values import Change, Conflict, Operation, Reference, Written
from weft.client.link.waiting import Waiting


class SyncClient(Waiting):
    """As `Client`, but each call waits for its result: `with weft.doc.SyncClient() as doc: doc.set("venue", text="Hall 5")`."""

    def __init__(self, node: Node = None, *, session: str = "", timeout: float = TIMEOUT_S) -> None:
        self._client = Client(node, session=session, timeout=timeout)
        super().__init__(self._client, "weft doc")

    def ask(self, verb: str, /, **args: Any) -> Any:
        """As `Client.ask`."""
        return self._do(self._client.ask(verb, **args))

    def sessions(self) -> list[dict[str, Any]]:
        """As `Client.sessions`."""
        return self._do(self._client.sessions())

    def status(self) -> dict[str, Any]:
        """As `Client.status`."""
        return self._do(self._client.status())

    def peers(self) -> list[dict[str, Any]]:
        """As `Client.peers`."""
        return self._do(self._client.peers())

    def sources(self) -> list[dict[str, Any]]:
        """As `Client.sources`."""
        return self._do(self._client.sources())

    def digest(self) -> dict[str, Any]:
        """As `Client.digest`."""
        return self._do(self._client.digest())

    def show(self, where: Reference | None = None, *, eids: bool = True) -> str:
        """As `Client.show`."""
        return self._do(self._client.show(where, eids=eids))

    def element(self, where: Reference) -> dict[str, Any]:
        """As `Client.element`."""
        return self._do(self._client.element(where))

    def conflicts(self, *, closed: bool = False) -> list[Conflict]:
        """As `Client.conflicts`."""
        return self._do(self._client.conflicts(closed=closed))

    def parked(self) -> list[Operation]:
        """As `Client.parked`."""
        return self._do(self._client.parked())

    def log(self, *, start: int = 0, source: str = "") -> Iterator[Operation]:
        """As `Client.log`."""
        return self._each(self._client.log(start=start, source=source))

    def tail(self, count: int) -> list[Operation]:
        """As `Client.tail`."""
        return self._do(self._client.tail(count))

    def board(self, at: float | None = None) -> dict[str, Any]:
        """As `Client.board`."""
        return self._do(self._client.board(at))

    def watch(self, *, operations: bool = True, events: bool = True) -> Iterator[Change]:
        """As `Client.watch`; it has begun when this returns, and ends when the iterator is closed or the loop is left."""
        watch = self._client.watch(operations=operations, events=events)
        self._do(watch.__aenter__())
        return self._each(watch)

    def add(self, where: Reference, xml: str = "", **how: Any) -> Written:
        """As `Client.add`."""
        return self._do(self._client.add(where, xml, **how))

    def set(self, where: Reference, attributes: Mapping[str, Any] | None = None, **how: Any) -> Written:
        """As `Client.set`."""
        return self._do(self._client.set(where, attributes, **how))

    def remove(self, where: Reference, **how: Any) -> Written:
        """As `Client.remove`."""
        return self._do(self._client.remove(where, **how))

    def edit(self, verb: str, words: Sequence[str], **more: Any) -> Written:
        """As `Client.edit`."""
        return self._do(self._client.edit(verb, words, **more))

    def undo(self, entry: str = "", *, by: str = "", force: bool = False) -> Written:
        """As `Client.undo`."""
        return self._do(self._client.undo(entry, by=by, force=force))

    def redo(self, *, by: str = "", force: bool = False) -> Written:
        """As `Client.redo`."""
        return self._do(self._client.redo(by=by, force=force))

    def resolve(self, conflict: str, side: Side | None = None, *, value: str | None = None, by: str = "") -> Written:
        """As `Client.resolve`."""
        return self._do(self._client.resolve(conflict, side, value=value, by=by))

    def chat(self, text: str) -> int:
        """As `Client.chat`."""
        return self._do(self._client.chat(text))

    def chats(self) -> list[dict[str, Any]]:
        """As `Client.chats`."""
        return self._do(self._client.chats())

    def bring(self, bodies: Iterable[bytes]) -> dict[str, int]:
        """As `Client.bring`."""
        return self._do(self._client.bring(bodies))

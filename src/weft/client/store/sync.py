"""`weft.store.SyncClient`: the synchronous client of the store, for scripts (CLN-030).

An event loop in a thread of its own talks to the node; mirrors are kept up to date there while the script is busy.
"""

from collections.abc import Callable, Coroutine, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from weft.base.changes import Path
from weft.client.link.waiting import Waiting
from weft.client.store.client import Ack, Client, Seen
from weft.client.store.finding import Node
from weft.client.store.limits import TIMEOUT_S
from weft.client.store.mirror import Mirror
from weft.client.store.values import MISSING, Change, Entry, Where, Written


class SyncClient(Waiting):
    """As `Client`, but each call waits for its result: `with weft.store.SyncClient() as store: store.set("a.b", 1)`."""

    def __init__(self, node: Node = None, *, timeout: float = TIMEOUT_S) -> None:
        self._client = Client(node, timeout=timeout)
        super().__init__(self._client, "weft store")

    @property
    def name(self) -> str:
        """The node's name in the store."""
        return self._client.name

    def get(self, path: Where, default: Any = MISSING) -> Any:
        """As `Client.get`."""
        return self._do(self._client.get(path, default))

    def entry(self, path: Where) -> Entry:
        """As `Client.entry`."""
        return self._do(self._client.entry(path))

    def list(self, path: Where = (), *, deleted: bool = False) -> list[Any]:
        """As `Client.list`."""
        return self._do(self._client.list(path, deleted=deleted))

    def tree(self, path: Where = (), **how: Any) -> Iterator[Entry]:
        """As `Client.tree`."""
        return self._each(self._client.tree(path, **how))

    def watch(self, path: Where = (), **how: Any) -> Iterator[Change]:
        """As `Client.watch`; it has begun when this returns, and ends when the iterator is closed or the loop is left."""
        watch = self._client.watch(path, **how)
        self._do(watch.__aenter__())
        return self._each(watch)

    def mirror(self, path: Where = ()) -> "SyncMirror":
        """As `Client.mirror`: `with store.mirror("home") as home: …`."""
        return SyncMirror(self._client.mirror(path), self._do)

    def state(self, *what: str) -> dict[str, Any]:
        """As `Client.state`."""
        return self._do(self._client.state(*what))

    def set(  # tidy: as `Client.set`
        self,
        path: Where,
        value: Any,
        *,
        chain: Seen = MISSING,
        prev: Any = MISSING,
        new: bool = False,
        idem: bool = False,
        ttl: float | None = None,
        ack: Ack = "local",
    ) -> Written:
        """As `Client.set`."""
        return self._do(self._client.set(path, value, chain=chain, prev=prev, new=new, idem=idem, ttl=ttl, ack=ack))

    def delete(self, path: Where, *, chain: Seen = MISSING, prev: Any = MISSING, ack: Ack = "local") -> Written:
        """As `Client.delete`."""
        return self._do(self._client.delete(path, chain=chain, prev=prev, ack=ack))

    def delete_tree(self, path: Where) -> int:
        """As `Client.delete_tree`."""
        return self._do(self._client.delete_tree(path))


class SyncMirror(Mapping[Where, Any]):
    """As `Mirror`: read in the script's thread, kept up to date in another one."""

    def __init__(self, mirror: Mirror, do: Callable[[Coroutine[Any, Any, Any]], Any]) -> None:
        self._mirror, self._do = mirror, do

    def __enter__(self) -> Self:
        """Copy everything."""
        self._do(self._mirror.__aenter__())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop updating; the copy can still be read."""
        self._do(self._mirror.__aexit__(kind, error, trace))

    def __getitem__(self, where: Where) -> Any:
        """The value at a path; KeyError if there is none."""
        return self._mirror[where]

    def __iter__(self) -> Iterator[Path]:
        """The paths that have a value, as they are now."""
        return iter(self._mirror)

    def __len__(self) -> int:
        """How many entries have a value."""
        return len(self._mirror)

    @property
    def is_fresh(self) -> bool:
        """As `Mirror.is_fresh`."""
        return self._mirror.is_fresh

    def entry(self, where: Where) -> Entry | None:
        """As `Mirror.entry`."""
        return self._mirror.entry(where)

    def on_change(self, call: Callable[[Change], None]) -> Callable[[Change], None]:
        """As `Mirror.on_change`; it is called in the other thread."""
        return self._mirror.on_change(call)

    def until(self, holds: Callable[[Mirror], bool]) -> None:
        """As `Mirror.until`; `holds` is called in the other thread."""
        self._do(self._mirror.until(holds))

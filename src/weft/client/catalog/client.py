"""`weft.catalog.Client`: a program's hand on the catalog of its network (specs/02, CAT-072)."""

from collections.abc import AsyncIterator, Sequence
from types import TracebackType
from typing import Any, Self

from weft.client.catalog.entries import Change, Entry, Value
from weft.client.catalog.limits import ANSWER_S, CALL_S
from weft.client.catalog.picking import Policy

Broker = str | int | Sequence[str] | None
"""host:port, a port of this machine, several of them (the first that answers), the state directory of a broker's node;
None: `WEFT_CATALOG`, else the one of this machine, else the first beacon."""
Payload = bytes | str | Sequence[bytes] | None


class Client:
    """Asks the catalog who is where: `async with weft.catalog.Client() as catalog: await catalog.get("thermo")`."""

    def __init__(self, broker: Broker = None, *, net: str = "", cache: bool = False, timeout: float = ANSWER_S) -> None:
        raise NotImplementedError

    async def __aenter__(self) -> Self:
        raise NotImplementedError

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError

    # Reading

    async def get(self, name: str) -> Entry: ...  # type: ignore[empty-body]
    async def instances(self, name: str) -> list[Entry]: ...  # type: ignore[empty-body]
    async def list(self) -> dict[str, Entry]: ...  # type: ignore[empty-body]
    async def query(self, **wanted: Any) -> list[Entry]: ...  # type: ignore[empty-body]
    def watch(self, **wanted: Any) -> AsyncIterator[Change]: ...  # type: ignore[empty-body]
    async def pick(self, name: str, policy: Policy = "first") -> Entry: ...  # type: ignore[empty-body]
    async def call(  # type: ignore[empty-body]
        self, name: str, endpoint: str, payload: Payload = None, *, timeout: float = CALL_S
    ) -> tuple[bytes, ...]: ...
    async def topics(self, prefix: str = "") -> list[dict[str, Any]]: ...  # type: ignore[empty-body]
    async def last_values(self, topic: str, *, publisher: str = "") -> list[Value]: ...  # type: ignore[empty-body]
    async def logs(self, **wanted: Any) -> list[dict[str, Any]]: ...  # type: ignore[empty-body]
    def subscribe(self, name: str, prefix: str = "", *, latest: bool = True) -> AsyncIterator[Value]: ...  # type: ignore[empty-body]
    async def status(self) -> dict[str, Any]: ...  # type: ignore[empty-body]
    async def liveness(self, name: str = "") -> list[dict[str, Any]]: ...  # type: ignore[empty-body]

    # By hand: what a Service does by itself

    async def register(self, name: str, **record: Any) -> dict[str, Any]: ...  # type: ignore[empty-body]
    async def update(self, name: str, **changes: Any) -> None: ...
    async def beat(self, name: str, instance: str = "") -> bool: ...  # type: ignore[empty-body]
    async def leave(self, name: str, instance: str = "") -> None: ...
    async def deregister(self, name: str, instance: str = "") -> None: ...

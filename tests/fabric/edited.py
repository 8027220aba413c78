"""A fabric whose nodes edit one document, the session `friday`: how it stands at each of them."""

from typing import Any

from tests.fabric.fabric import Fabric
from weft.doc import SyncClient


class Edited(Fabric):
    """Who derives from it says in its settings that the nodes take part."""

    def document(self, name: str) -> dict[str, Any]:
        """What a node's status says of its documents."""
        return dict(self.status(name).get("cores", {}).get("document", {}))

    def active(self, name: str) -> int:
        return int(self.document(name).get("peers", {}).get("friday:ACTIVE", 0))

    def check(self, name: str) -> str:
        return str(self.document(name).get("check", {}).get("friday"))

    def client(self, name: str) -> SyncClient:
        return SyncClient(self.place / name, session="friday")

    def is_mesh(self) -> bool:
        """Whether everybody is connected with everybody."""
        return all(self.active(name) == len(self.parents) - 1 for name in self.parents)

    def is_equal(self) -> bool:
        """Whether all have the same log."""
        return len({self.check(name) for name in self.parents}) == 1

    def digests(self) -> set[tuple[str, str]]:
        """Of the documents and logs that there are."""
        found = set()
        for name in self.parents:
            with self.client(name) as client:
                told = client.digest()
                found.add((told["digest"], told["check"]))
        return found

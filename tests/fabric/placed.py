"""A real fleet on loopback that places itself: one root with a fleet's file, all other nodes know only their name."""

import json
from pathlib import Path
from typing import Any

from tests.fabric.fabric import FLEET as NAME
from tests.fabric.fabric import Fabric
from weft.cli.asking import order

FLEET = """
[fleet]
name = "{fleet}"
heartbeat = "{heartbeat}"
dead_after = 5

[metric.cpu]
detail = "CPU"
rate = "0.1s"

[metric.memory]
detail = "MEMORY"
rate = "0.2s"

[group.lab]
collectors = [{collectors}]
members = ["127.0.0.0/8"]
metrics = ["cpu", "memory"]
"""
NODE = """
[fleet]
name = "{fleet}"
beacon_port = {beacon_port}
heartbeat = "{heartbeat}"
beat_s = 0.2
dead_s = 1.0

[node]
name = "{name}"
{more}
port = {port}
state = "{state}"
flush_s = 0.1

[lake]
path = "{lake}"
"""


class PlacedFabric(Fabric):
    """Names beginning with `collector` are the collectors of the one group, in their order."""

    def __init__(self, place: Path, names: tuple[str, ...], heartbeat: str = "0.2s") -> None:
        super().__init__(place, dict.fromkeys(names, ""))
        self.heartbeat = heartbeat
        collectors = ", ".join(f'"127.0.0.1:{self.ports[name]}"' for name in names if name.startswith("collector"))
        self.file = place / "fleet.toml"
        self.file.write_text(FLEET.format(fleet=NAME, collectors=collectors, heartbeat=heartbeat), "utf-8")

    def settings(self, name: str, port: int, state: Path) -> str:
        return NODE.format(
            fleet=NAME,
            name=name,
            more=f'level = "root"\nconfig = "{self.file}"' if name == "root" else "",
            port=port,
            state=state,
            lake=self.lake,
            beacon_port=next(iter(self.ports.values())),
            heartbeat=self.heartbeat,
        )

    def endpoint(self, name: str) -> str:
        return f"127.0.0.1:{self.ports[name]}"

    def ask(self, name: str, what: str, **fields: Any) -> Any:
        """Give a node an order, as people do."""
        return order(self.ports[name], what, **fields)

    def roots(self) -> list[str]:
        """Who says of itself that it is the root."""
        return [name for name in self.ports if self.status(name).get("level") == "root"]

    def place_of(self, name: str) -> tuple[str, str]:
        """The state of its link upward, and who is at its other end."""
        carrier = self.status(name).get("cores", {}).get("carrier", {})
        return carrier.get("state", ""), self.status(name).get("parent", {}).get("name", "")

    def is_joined(self, name: str) -> bool:
        return self.place_of(name)[0] == "OPEN"

    def number(self, name: str) -> int:
        """The number of the configuration that a node runs."""
        told = self.status(name).get("cores", {}).get("configuration", {})
        return int(told.get("number", -1)) if told.get("state") in ("RUN", "ROOT") else -1

    def values(self, name: str, prefix: str) -> dict[str, Any]:
        """What a node has replicated under a prefix."""
        listed = self.ask(name, "list", subtree=prefix)
        return {key: json.loads(value) if isinstance(value, str) else value for key, _, value in listed["pairs"]}

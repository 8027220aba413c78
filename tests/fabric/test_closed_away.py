"""A node that was away for weeks comes home by itself, and after its keys have ended by what a token tells it (SEC-054, SEC-025)."""

import asyncio
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.fabric.closed import Hall
from weft.base.keys import Binding, binding_key, encode_binding
from weft.base.now import SECOND, Now
from weft.cores.configuration.messages import Write, WriteKeys
from weft.node.settings import settings_of
from weft.shell.clock import Clock
from weft.shell.keys import load_known, save_known
from weft.shell.process import Doors, Process

pytestmark = pytest.mark.prove("a fleet that sleeps for weeks")

TREE = {"root": "", "sensor-1": "root"}
DAY_S = 86_400


class Later(Clock):
    """The wall clock of some days later."""

    def __init__(self, days: int) -> None:
        super().__init__()
        self._ahead_ns = days * DAY_S * SECOND

    def now(self) -> Now:
        now = super().now()
        return now._replace(wall=now.wall + self._ahead_ns)


class Weeks(Hall):
    """Nodes whose bindings end after 90 days, and which may be started again some days later."""

    days = 0

    def process_of(self, document: dict[str, Any]) -> Process:
        return Process(settings_of(document), Doors(clock=Later(self.days)))

    def bindings(self, until_days: int) -> dict[bytes, Binding]:
        until = int(time.time()) + until_days * DAY_S
        return {each.uuid: msgspec.structs.replace(each.binding, until=until) for each in self.fabric.nodes.values()}

    def write(self, until_days: int) -> None:
        writes = tuple(
            Write(binding_key(uuid), encode_binding(each)) for uuid, each in self.bindings(until_days).items()
        )
        self.up["root"].runner.order("configuration", WriteKeys(7, writes, who="test", ack="local"))

    def tell(self, name: str, until_days: int) -> None:
        """What `weft join` writes down of a WELCOME."""
        known = load_known(self.fabric.place / name)
        bindings = {uuid.hex(): each for uuid, each in self.bindings(until_days).items()}
        save_known(self.fabric.place / name, msgspec.structs.replace(known, bindings=bindings))

    def until_of(self, name: str) -> set[int]:
        return {each.until for each in self.up[name].links.credentials.table}

    def is_home(self) -> bool:
        return "sensor-1" in self.up["root"].node.standing.children.values()


@pytest.mark.proves("SEC-054", part="a node that was away for two weeks comes home by itself")
def test_a_node_that_was_away_for_two_weeks_comes_home_by_itself(tmp_path: Path) -> None:
    async def main() -> None:
        async with Weeks(tmp_path, TREE, {}) as hall:
            hall.write(90)
            await hall.until(lambda: all(0 not in hall.until_of(name) for name in TREE), "all know until when")
            await hall.end("sensor-1", "root")
            hall.days = 14
            hall.start("root")
            hall.start("sensor-1")
            await hall.until(hall.is_home, "it is home")

    asyncio.run(main())


@pytest.mark.proves("SEC-025", part="a part that hears nothing believes a key for as long as its binding says")
@pytest.mark.proves("SEC-054", part="a node that is past its `until` comes home by one command at its side")
def test_a_node_past_its_time_comes_home_by_what_a_token_tells_it(tmp_path: Path) -> None:
    async def main() -> None:
        async with Weeks(tmp_path, TREE, {}) as hall:
            hall.write(90)
            await hall.until(lambda: all(0 not in hall.until_of(name) for name in TREE), "all know until when")
            await hall.end("sensor-1")
            before = hall.until_of("root")
            hall.write(190)
            await hall.until(lambda: not before & hall.until_of("root"), "the root has renewed all")
            await hall.end("root")
            hall.days = 100
            hall.start("root")
            hall.start("sensor-1")
            await hall.until(lambda: hall.up["root"].telemetry.health.is_ready, "the root leads")
            await hall.until(lambda: not hall.until_of("sensor-1"), "it knows nobody any more")
            assert not hall.is_home()
            await hall.end("sensor-1")
            hall.tell("sensor-1", 190)
            hall.start("sensor-1")
            await hall.until(hall.is_home, "it is home")

    asyncio.run(main())


class Unplaced(Weeks):
    """Nodes that start anew call for a place."""

    is_new = True

    def process_of(self, document: dict[str, Any]) -> Process:
        node = document["node"]
        if not self.is_new and node["level"] == "sensor":
            del node["level"]
            node["join"] = [node.pop("parent")]
        return super().process_of(document)


@pytest.mark.proves("SEC-024", part="who starts anew without a parent knows the keys of its configuration at once")
def test_a_node_without_a_parent_knew_none_of_the_keys_of_its_configuration_and_no_root_could_call_it(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        async with Unplaced(tmp_path, TREE, {}) as hall:
            hall.write(90)
            await hall.until(lambda: all(0 not in hall.until_of(name) for name in TREE), "all know until when")
            await hall.end("sensor-1", "root")
            known, own = load_known(tmp_path / "sensor-1"), hall.fabric.nodes["sensor-1"].uuid.hex()
            bindings = {uuid: each for uuid, each in known.bindings.items() if uuid == own}
            save_known(tmp_path / "sensor-1", msgspec.structs.replace(known, bindings=bindings))
            hall.is_new = False
            hall.start("sensor-1")
            root = hall.fabric.nodes["root"].keys.public
            found = hall.up["sensor-1"].links.credentials
            await hall.until(lambda: found.table.find(root) is not None, "it knows the root's key")

    asyncio.run(main())

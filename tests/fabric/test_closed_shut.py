"""A node whose key is nobody's any more at its parent: it says so, knocks seldom, and is back when it may be (SEC-052)."""

import asyncio
from pathlib import Path

import pytest

from tests.fabric.closed import Hall
from tests.fabric.test_closed_keys import TREE, _bindings, _unknown, _write
from weft.base.keys import binding_key, encode_binding
from weft.cores.configuration.messages import Write
from weft.shell.process import Process


def _shut(process: Process) -> dict[str, int]:
    """Doors that refuse it for its key, and how often it has knocked there."""
    facts = process.telemetry.security_facts()["shut"]
    return {each["at"]: each["tries"] for each in facts if each["why"] == "key-refused"}


@pytest.mark.proves(
    "SEC-052", part="of a node that is refused only single knocks come, which it says in its status; it comes back"
)
def test_who_is_refused_knocks_seldom_says_so_and_comes_back_when_it_may(tmp_path: Path) -> None:
    async def main() -> None:
        async with Hall(tmp_path, TREE, {}) as hall:
            root, sensor, uuid = hall.up["root"], hall.up["sensor-1"], hall.fabric.nodes["sensor-1"].uuid
            link = f"127.0.0.1:{hall.fabric.ports['root'] + 7}"
            _write(hall, *_bindings(hall))
            await hall.until(lambda: len(root.links.credentials.table) == 2, "the bindings are written")
            _write(hall, Write(binding_key(uuid), b""))
            await hall.until(lambda: _shut(sensor).get(link, 0) >= 3, "it knows that it is refused", 60)
            checks = {check["name"]: check for check in sensor.telemetry.health_facts()["checks"]}
            assert link in checks["parent"]["text"]
            before, knocks = _unknown(root), sum(_shut(sensor).values())
            await hall.until(lambda: _shut(sensor).get(link, 0) >= 5, "it has knocked again", 60)
            assert _unknown(root) - before <= sum(_shut(sensor).values()) - knocks + len(_shut(sensor))
            _write(hall, Write(binding_key(uuid), encode_binding(hall.fabric.nodes["sensor-1"].binding)))
            await hall.until(
                lambda: "sensor-1" in root.node.standing.children.values() and not _shut(sensor), "it is back", 90
            )

    asyncio.run(main())

"""`[chp]` of a node's file: off unless asked for, closed unless opened, and every mistake said at once."""

import asyncio
from typing import Any

import pytest

from tests.clone.rig import UUID
from tests.shell.ports import free_port
from weft.base.errors import UserError
from weft.node.assembly import build_node
from weft.node.channels import CHANNELS, CLONE, channels_of
from weft.node.settings import settings_of
from weft.shell.links import Links

NODE = {"name": "r", "level": "root", "port": 27_500}
OPEN = {"mode": "none", "allow_insecure": True}


def mistakes(chp: dict[str, Any], **tables: Any) -> str:
    with pytest.raises(UserError) as caught:
        settings_of({"node": NODE, "chp": chp, **tables})
    return caught.value.text


@pytest.mark.proves("CFG-060")
def test_it_is_off_by_default() -> None:
    for table in ({}, {"writable": ["/client/"]}):
        settings = settings_of({"node": NODE, "chp": table})
        assert "clone" not in settings.runs
        node = build_node(settings, UUID, 1, "seed")
        assert not [name for name in node.channels if name.startswith("clone")]


@pytest.mark.parametrize("table", [{"port": 5_556}, {"import": "127.0.0.1:5556"}])
def test_a_port_or_a_server_puts_the_core_to_work(table: dict[str, Any]) -> None:
    settings = settings_of({"node": NODE, "chp": table})
    assert "clone" == settings.runs[-1]
    assert "clone" in build_node(settings, UUID, 1, "seed").cores
    without = settings_of({"node": {**NODE, "runs": ["topology", "measurement"]}, "chp": table})
    assert ("topology", "measurement") == without.runs


@pytest.mark.parametrize(
    "code, place, table",
    [
        ("E04", "chp.port", {"port": 80}),
        ("E04", "chp", {"port": 65_534}),
        ("E04", "chp", {"port": "5556"}),
        ("E02", "chp.prot", {"prot": 5_556}),
        ("E06", "chp.port", {"port": 27_509}),
        ("E06", "chp.port", {"port": 27_498}),
        ("E04", "chp.writable", {"port": 5_556, "writable": ["/a/", "b"]}),
        ("E04", "chp.loose_prefix", {"port": 5_556, "writable": ["/a"], "loose_prefix": "/a"}),
        ("E04", "chp.loose_prefix", {"port": 5_556, "loose_prefix": "/a/"}),
        ("E05", "chp.import", {"import": "x"}),
        ("E05", "chp.import", {"import": "10.0.0.9:5556"}),
        ("E05", "chp.import", {"port": 5_556, "import": "localhost:5556"}),
        ("E04", "chp.import_prefix", {"import": "127.0.0.1:5556", "import_prefix": "/"}),
    ],
)
def test_what_is_wrong_is_named(code: str, place: str, table: dict[str, Any]) -> None:
    assert f"{code} {place}" in mistakes(table).replace("[chp]", "chp")


@pytest.mark.proves("CFG-060")
def test_another_machine_is_only_followed_and_served_where_the_network_may_be_open() -> None:
    table = {"port": 5_556, "import": "10.0.0.9:5556"}
    settings = settings_of({"node": {**NODE, "host": "10.0.0.1"}, "chp": table, "security": OPEN})
    assert ("10.0.0.9:5556", "/clone/") == (settings.chp.source, settings.chp.import_prefix)
    assert "chp.import: only loopback" in mistakes(table, node={**NODE, "host": "10.0.0.1"})


def test_its_own_metrics_remain_those_of_a_node_that_serves() -> None:
    settings = settings_of({"node": NODE, "chp": {"port": 5_556}, "metric": {"cpu": {"detail": "CPU", "rate": "1s"}}})
    assert (False, 1) == (settings.follows, len(settings.metrics))


def test_a_taken_port_is_refused_with_the_key_to_mend() -> None:
    async def main() -> None:
        port, first = free_port(), Links(lambda: None)
        first.serve("127.0.0.1", 0, ["clone-serve"], {CLONE: port})
        with pytest.raises(UserError) as caught:
            Links(lambda: None).serve("127.0.0.1", 0, ["clone-serve"], {CLONE: port})
        first.close()
        assert ("port-taken", "another [chp] port") == (caught.value.code, caught.value.try_this)
        assert f"port {port} of" in caught.value.text

    asyncio.run(main())


def test_channels_of_a_block_that_is_not_there_are_not_bound() -> None:
    async def main() -> None:
        links = Links(lambda: None)
        links.serve("127.0.0.1", 0, channels_of(("clone",)))
        assert not links.send("clone-publish", b"", [b"HUGZ"])
        assert 1 == links.dropped["clone-publish:closed"]
        links.close()

    asyncio.run(main())
    assert {"clone"} == {row.core for row in CHANNELS.values() if row.block == CLONE}

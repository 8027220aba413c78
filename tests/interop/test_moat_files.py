"""Files of real MoaT-KV servers go into Weft, and Weft's into them.

Meets the newest release, or those of the variable WEFT_MOAT, as `test_moat` does.
"""

import subprocess
import sys
from pathlib import Path as File

import pytest

from tests.interop.moat.peers import CYCLE_S, until, versions
from tests.interop.moat.speaker import GONE, Path, living
from tests.interop.moat.world import Room
from tests.patience import PATIENCE_S
from weft.cli.asking import order

VALUES = {
    "text": "für alle",
    "list": [1, "two", None],
    "bytes": b"\x00\xff",
    "huge": (1 << 70) + 5,
    "null": None,
    "path": Path(("a", 1)),
}


def weft(*words: str | int | File) -> str:
    """A command of Weft; what it prints."""
    command = [sys.executable, "-m", "weft.cli.main", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert 0 == ran.returncode, ran.stderr
    return ran.stdout


@pytest.mark.proves("ADM-012", "ADM-013")
@pytest.mark.parametrize("version", versions())
def test_what_a_real_server_saved_is_copied_and_what_weft_saved_is_loaded(version: str, tmp_path: File) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    values = {name: value for name, value in VALUES.items() if version == "new" or name != "path"}
    with Room(tmp_path, version) as room:
        room.real("n1", "hello").ready()
        with room.members["n1"].client() as client:
            client.set_all([(f"kinds.{name}", value) for name, value in values.items()])
            client.set_all([(f"many.{number}", number) for number in range(200)])
            client.set_all([(f"many.{number}", GONE) for number in range(0, 200, 4)])
            expected = living(client.whole())
            client.ask("save", path=str(theirs), full=True)
    with Room(tmp_path, version) as room:
        node = room.woven("n3")
        until(lambda: node.status().get("state") == "LISTEN", node.said)
        said = weft("store", "load", theirs, "--as", "copy", "--whole", "--port", node.block)
        node.ready()
        with node.client() as client:
            found = living(client.whole())
            assert {(None, "node", "n3")} == {tuple(path) for path in found.keys() - expected.keys()}, said
            assert expected == {path: held for path, held in found.items() if path in expected}, "values and heads"
            client.set("after.the", "copy")
            client.delete("many.1")
        assert "exists" == order_refused(node.block)
        weft("store", "save", ours, "--node", f"127.0.0.1:{node.port}")
        with node.client() as client:
            expected = living(client.whole())
    with Room(tmp_path, version) as room:
        room.real("n3", loads=ours).ready()
        with room.members["n3"].client() as client:
            found = living(client.whole())
            assert expected == {path: held for path, held in found.items() if path in expected}
            assert not client.missing()
        room.woven("n5").ready()
        whole = room.equal(3 * CYCLE_S)
        assert ("copy", GONE) == (whole[Path.of("after.the")][0], whole.get(Path.of("many.1"), (GONE,))[0])
        room.all_live()


def order_refused(port: int) -> str:
    """What a member says to a further piece of a copy."""
    try:
        order(port, "store-copy", records=[], is_first=True, is_last=True)
    except Exception as error:  # noqa: BLE001  # whichever: its text is what is looked at
        return "exists" if "has a store" in str(error) else str(error)
    return "taken"

"""What `weft torture --closed` gives to each node before it starts: keys, whose are whose, and nothing open."""

from pathlib import Path

import msgspec

from weft.shell.keys import load_keys, load_known
from weft.torture.clients import Machine
from weft.torture.files import write_files
from weft.torture.plan import NODES


def machines(place: Path, *, closed: bool) -> dict[str, Machine]:
    return {
        name: Machine(name, f"10.77.0.{number}", 27_500, f"m{number}", place / name, closed)
        for number, name in enumerate(NODES, 1)
    }


def test_every_node_knows_the_keys_and_roles_of_all(tmp_path: Path) -> None:
    write_files(tmp_path, tmp_path / "lake", machines(tmp_path, closed=True))
    known = {name: load_known(tmp_path / name) for name in NODES}
    assert 1 == len({msgspec.json.encode(each) for each in known.values()})
    roles = {each.name: each.roles for each in known["root"].bindings.values()}
    leaders = {"root", "collector-1", "collector-2"}
    assert {name: ("collector",) if name in leaders else ("sensor",) for name in NODES} == roles
    for name, at in machines(tmp_path, closed=True).items():
        keys = load_keys(at.state)
        assert keys is not None
        uuid = known[name].places[f"{at.host}:{at.port}"]
        assert (keys.public,) == known[name].bindings[uuid].curve
        assert "[security]" not in (tmp_path / f"{name}.toml").read_text("utf-8")


def test_without_it_nodes_say_that_they_are_open_and_have_no_keys(tmp_path: Path) -> None:
    write_files(tmp_path, tmp_path / "lake", machines(tmp_path, closed=False))
    assert [None] * len(NODES) == [load_keys(tmp_path / name) for name in NODES]
    assert all("allow_insecure = true" in (tmp_path / f"{name}.toml").read_text("utf-8") for name in NODES)


def test_programs_reach_a_node_with_keys_on_its_own_machine_only(tmp_path: Path) -> None:
    at = machines(tmp_path, closed=True)["collector-1"]
    assert ("127.0.0.1", "10.77.0.2") == (at.inside, at._replace(is_closed=False).inside)
    write_files(tmp_path, tmp_path / "lake", machines(tmp_path, closed=True))
    assert '[catalog]\nhost = "127.0.0.1"' in (tmp_path / "collector-1.toml").read_text("utf-8")

"""The door for programs of the machine, and the way in for those of the process itself."""

import stat
from pathlib import Path

import pytest
import zmq

from weft.base.errors import StorageFailed, UserError
from weft.shell.door import Door, note_down
from weft.shell.ends import Heard
from weft.shell.links import Links

CHANNELS = ("clients",)


class Shown(Links):
    """Links that say where they were asked to bind, and leave a file there as libzmq does."""

    def __init__(self) -> None:
        self.asked: list[Path] = []

    def serve_locally(self, path: Path, channels: object) -> None:
        self.asked.append(path)
        path.touch()


@pytest.mark.proves("CLI-001")
def test_the_socket_stands_in_the_state_directory_and_the_note_says_so(tmp_path: Path) -> None:
    door, links = Door(tmp_path), Shown()
    door.open(links, CHANNELS)
    assert [tmp_path / "chains.sock"] == links.asked
    assert f"ipc://{tmp_path}/chains.sock\n" == (tmp_path / "chains.endpoint").read_text("utf-8")
    door.close()
    assert [] == list(tmp_path.iterdir())


@pytest.mark.proves("CLI-001")
def test_a_path_that_no_socket_can_have_is_replaced_by_a_short_one(tmp_path: Path) -> None:
    deep = tmp_path / ("x" * 60) / ("y" * 60)
    deep.mkdir(parents=True)
    door, links = Door(deep), Shown()
    door.open(links, CHANNELS)
    assert len(bytes(links.asked[0])) <= 107
    assert f"ipc://{links.asked[0]}\n" == (deep / "chains.endpoint").read_text("utf-8")
    made = links.asked[0].parent
    assert made.is_dir()
    door.close()
    assert not made.exists()


@pytest.mark.proves("CLI-001")
def test_only_this_user_may_open_the_socket(tmp_path: Path) -> None:
    import asyncio

    async def main() -> None:
        links = Links(lambda: None)
        links.serve_locally(tmp_path / "chains.sock", ("clients",))
        mode = stat.S_IMODE((tmp_path / "chains.sock").stat().st_mode)
        links.close()
        assert 0o600 == mode

    asyncio.run(main())


def test_a_place_where_no_socket_can_be_is_said_with_its_mend(tmp_path: Path) -> None:
    import asyncio

    async def main() -> None:
        links = Links(lambda: None)
        with pytest.raises(UserError) as refused:
            links.serve_locally(tmp_path / "nowhere" / "chains.sock", ("clients",))
        assert "socket-refused" == refused.value.code

    asyncio.run(main())


def test_what_was_bound_before_a_crash_is_in_nobodys_way(tmp_path: Path) -> None:
    import asyncio

    (tmp_path / "chains.sock").write_bytes(b"")

    async def main() -> None:
        links = Links(lambda: None)
        links.serve_locally(tmp_path / "chains.sock", ("clients",))
        with zmq.Context() as context, context.socket(zmq.DEALER) as dealer:
            dealer.setsockopt(zmq.LINGER, 0)
            dealer.connect(f"ipc://{tmp_path}/chains.sock")
            dealer.send(b"hello")
            heard: list[Heard] = []
            for _ in range(1_000):
                heard, _ = links.drain()
                if heard:
                    break
                await asyncio.sleep(0.001)  # tidy: libzmq's own thread tells nobody; bounded
            assert [[b"hello"]] == [item.frames for item in heard]
        links.close()

    asyncio.run(main())


def test_a_node_that_starts_on_a_full_disk_says_so_instead_of_breaking_down(tmp_path: Path) -> None:
    (tmp_path / "chains.new").symlink_to("/dev/full")
    with pytest.raises(StorageFailed, match="No space left on device"):
        Door(tmp_path).open(Shown(), CHANNELS)
    (tmp_path / "store.new").symlink_to("/dev/full")
    with pytest.raises(StorageFailed, match="No space left on device"):
        note_down(tmp_path / "store.endpoint", "127.0.0.1:27505")

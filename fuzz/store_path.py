"""Paths of the store: any bytes and any text are a path that comes back, or `bad-path` (STO-004, COD-005)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import lines
from weft.base.changes import Path
from weft.wire.store.path import normal, pack_path, parse, text_of, unpack_path


def one(data: bytes) -> None:
    """As the body of an extension, and as text."""
    for read, given in ((unpack_path, data), (parse, data.decode("utf-8", "replace"))):
        code, path = attempt(read, given)
        assert code in ("accepted", "bad-path"), code
        if path is not None:
            _comes_back(path)


def _comes_back(path: Path) -> None:
    body = pack_path(path)
    assert body == pack_path(unpack_path(body)), path
    assert len(text_of(path)) > 8_192 or body == pack_path(parse(text_of(path))), path
    for keys in ("seed", "moat"):
        code, found = attempt(normal, path, keys)
        assert code in ("accepted", "bad-path"), code
        if found is not None:
            assert pack_path(found) == pack_path(normal(found, keys)), path


def seeds() -> Iterable[bytes]:
    """Texts and bodies of the vectors."""
    for line in lines("store-computed"):
        if line["id"].startswith("path"):
            yield line["means"]["text"].encode()
            yield bytes.fromhex(line["payload"])[2:]


if __name__ == "__main__":
    run(one)

"""YAML of the store: any text is a value that comes back, or `bad-yaml` (COD-006)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import lines
from weft.wire.store import pack, yamltext


def one(data: bytes) -> None:
    """What was read is written, and read again."""
    code, value = attempt(yamltext.load, data.decode("utf-8", "replace"))
    assert code in ("accepted", "bad-yaml"), code
    code, raw = attempt(pack.pack, value)
    assert code in ("accepted", "unencodable"), code  # an integer that nobody could send
    if raw is not None:
        assert raw == pack.pack(yamltext.load(yamltext.dump(value))), value


def seeds() -> Iterable[bytes]:
    """Texts of the vectors."""
    return [line["means"]["yaml"].encode() for line in lines("store-computed") if "yaml" in line["means"]]


if __name__ == "__main__":
    run(one)

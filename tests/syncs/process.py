"""One life as a process of its own, which says each promise on its standard output: `python -m tests.syncs.process LIFE DIR`."""

import sys
from pathlib import Path

from tests.syncs.calls import Witness
from tests.syncs.lives import LIVES


class Teller(Witness):
    """Says what is answered, for somebody who watches the system calls."""

    def answered(self, what: str) -> None:
        sys.stdout.write(f"{what}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    LIVES[sys.argv[1]](Path(sys.argv[2]), Teller(Path(sys.argv[2])))

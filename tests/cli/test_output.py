"""What a command says when the disk behind its output is full."""

import subprocess
import sys
from pathlib import Path

WORDS = [sys.executable, "-m", "weft.cli.main", "chain", "--help"]


def test_a_full_disk_is_a_sentence_and_a_status_of_its_own() -> None:
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(WORDS, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (74, "weft: not all could be written: No space left on device\n  try: a disk with more room\n") == (
        ran.returncode,
        ran.stderr,
    )

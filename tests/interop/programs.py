"""Programs and files of the system that tests beside other stacks need."""

import shutil
from pathlib import Path

import pytest


def needed(name: str) -> str:
    """The path of a program or a file; the test fails with what to do if it is not there."""
    found = shutil.which(name) if not name.startswith("/") else name if Path(name).exists() else None
    if found is None:
        pytest.fail(f"{name} is not on this machine: run scripts/interop-install", pytrace=False)
    return found

"""Makes the corpora of targets from their seeds, each as small as it can be.

    python -m fuzz.house.corpus [TARGET ...]

A seed is kept if it goes through lines of Weft, or comes to an outcome, that none before it did, smallest first; so a corpus
holds each way that its seeds know, once. Files that stand there already take part; they are named by their contents, but
what has once broken something is called `found-…` and always stays.
"""

import sys
from collections.abc import Iterable
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

from fuzz.house.running import Target, outcomes

FUZZ: Final = Path(__file__).parents[1]
CORPUS: Final = FUZZ / "corpus"
FOUND: Final = "found-"
WEFT: Final = str(FUZZ.parent / "src" / "weft")
Step = tuple[CodeType, int] | tuple[str, str]
"""A line of code, or an outcome."""


def names() -> list[str]:
    """All targets."""
    return sorted(path.stem for path in FUZZ.glob("*.py"))


def steps_of(target: Target, data: bytes) -> set[Step]:
    """The lines of Weft that an input goes through, and what comes of it."""
    seen: set[Step] = set()

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        code = frame.f_code
        if event == "call" and not code.co_filename.startswith(WEFT):
            return None
        seen.add((code, frame.f_lineno))
        return trace

    before = sys.gettrace()
    outcomes.clear()
    sys.settrace(trace)
    try:
        target(data)
    finally:
        sys.settrace(before)
    return seen | outcomes


def minimised(target: Target, inputs: Iterable[bytes]) -> list[bytes]:
    """The inputs that are needed to go wherever they go."""
    seen: set[Step] = set()
    kept: list[bytes] = []
    for data in sorted(set(inputs), key=lambda data: (len(data), data)):
        new = steps_of(target, data) - seen
        if new:
            seen |= new
            kept.append(data)
    return kept


def make(name: str) -> list[bytes]:
    """Write the corpus of a target anew; returns what it holds."""
    module = import_module(f"fuzz.{name}")
    place = CORPUS / name
    place.mkdir(parents=True, exist_ok=True)
    before = {path: path.read_bytes() for path in place.iterdir()}
    kept = minimised(module.one, [*module.seeds(), *before.values()])
    for path in before:
        if not path.name.startswith(FOUND):
            path.unlink()
    for data in kept:
        if data not in [before[path] for path in before if path.exists()]:
            (place / blake2b(data, digest_size=8).hexdigest()).write_bytes(data)
    return kept


def main() -> None:
    """Those that are named, or all."""
    for name in sys.argv[1:] or names():
        kept = make(name)
        sys.stdout.write(f"{name}: {len(kept)} inputs, {sum(map(len, kept))} bytes\n")


if __name__ == "__main__":
    main()

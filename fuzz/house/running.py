"""Runs a target: by atheris where that is installed, which looks for new ways through the code, else by mutation alone.

    python -m fuzz.TARGET [-max_total_time=SECONDS] [-runs=N] [-seed=N] DIRECTORY *

The words are libFuzzer's. Every file of the directories is an example to begin with; bytes that raise anything are
written into the first directory, and the exit status is 1.

A target is a module of `fuzz/` with two functions: `one(data)` plays an input and raises where a promise is broken,
`seeds()` gives inputs from the vectors, from which `fuzz.house.corpus` makes the corpus.
"""

import sys
import time
import traceback
from collections.abc import Callable, Iterable
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.errors import PeerError

Target = Callable[[bytes], None]
BYTES_MAX: Final = 4_096
KEPT_MAX: Final = 4_000
SLOW_S: Final = 5.0  # of one input, which takes less than a millisecond mostly
STRANGE: Final = tuple(
    bytes.fromhex(text)
    for text in [
        "c0",
        "c1",
        "80",
        "90",
        "81",
        "91",
        "ddffffffff",
        "dfffffffff",
        "c6ffffffff",
        "a1ff",
        "c7",
        "d4ff00",
        "d403c0",
        "cb7ff8000000000000",
        "cfffffffffffffffff",
        "d38000000000000000",
        "d7ff00000000ffffffff",
        "00",
        "ff",
        "7f",
        "0a",
        "eda080",
        "e280a8",
    ]
)


outcomes: set[tuple[str, str]] = set()
"""What `attempt` has met since somebody emptied it: what was made, or why it was refused."""


def attempt(does: Callable[..., Any], *given: Any) -> tuple[str, Any]:
    """What comes of it: `accepted` and the outcome, or the code of the refusal and nothing."""
    try:
        made = does(*given)
    except PeerError as error:
        outcomes.add((error.code, error.why[:40]))
        return error.code, None
    outcomes.add(("accepted", type(getattr(made, "message", made)).__name__))
    return "accepted", made


def run(target: Target) -> None:
    """Call the target with one input after the other, as the command line says; never returns."""
    if find_spec("atheris"):
        atheris = import_module("atheris")  # installed where coverage is wanted
        atheris.instrument_all()
        atheris.Setup(sys.argv, target)
        atheris.Fuzz()
    sys.exit(mutate(target, sys.argv[1:]))


def mutate(target: Target, arguments: Iterable[str]) -> int:
    """Play the examples, then mutations of them; the exit status: 1 if anything was raised."""
    words = list(arguments)
    flags = dict(word.lstrip("-").split("=", 1) for word in words if word.startswith("-"))
    places = [Path(word) for word in words if not word.startswith("-")]
    chance = Chance(flags.get("seed", str(time.time_ns())))
    kept = [path.read_bytes() for place in places for path in sorted(place.glob("*"))] or [b""]
    runs, ends_at = int(flags.get("runs", 0)), time.monotonic() + float(flags.get("max_total_time", 60))
    done = 0
    while time.monotonic() < ends_at and (not runs or done < runs):
        data = kept[done] if done < len(kept) else _mutated(chance, kept)
        if not _survives(target, data, places):
            return 1
        if len(kept) < KEPT_MAX and chance.random() < 0.01:
            kept.append(data)
        done += 1
    sys.stdout.write(f"{done} inputs, seed {flags.get('seed', 'of the clock')}: no harm done\n")
    return 0


def _survives(target: Target, data: bytes, places: list[Path]) -> bool:
    outcomes.clear()
    began = time.process_time()
    try:
        target(data)
        took = time.process_time() - began
        assert took < SLOW_S, f"{len(data)} bytes take {took:.1f} s"
    except Exception:  # noqa: BLE001  # whatever it is, it is what was looked for
        found = (places or [Path()])[0] / f"crash-{blake2b(data, digest_size=8).hexdigest()}"
        found.write_bytes(data)
        sys.stderr.write(f"{traceback.format_exc()}\nby {len(data)} bytes, kept in {found}\n")
        return False
    return True


def _mutated(chance: Chance, kept: list[bytes]) -> bytes:
    data = bytearray(chance.choice(kept))
    for _ in range(chance.randint(1, 3)):
        start, piece = chance.randint(0, len(data)), _piece(chance, kept, data)
        gone = len(piece) if chance.random() < 0.7 else chance.choice((0, 1, 2, 8))
        data[start : start + gone] = piece  # mostly in place of as many: lengths around it stay right
    return bytes(data[:BYTES_MAX])


def _piece(chance: Chance, kept: list[bytes], data: bytearray) -> bytes:
    """What is put in: any byte, a strange head, or a part of this example or of another one."""
    kind = chance.randrange(5)
    if kind == 0:
        return bytes((chance.randrange(256),))
    if kind == 1:
        return chance.choice(STRANGE)
    if kind == 2:
        return b"" if chance.random() < 0.3 else bytes((chance.randrange(256), chance.randrange(256)))
    other = bytes(data) if kind == 3 else chance.choice(kept)
    start = chance.randint(0, len(other))
    return other[start : start + chance.randint(1, 24)]

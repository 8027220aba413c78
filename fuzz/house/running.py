"""Runs a target: by atheris where that is installed, which looks for new ways through the code, else by mutation alone.

    python fuzz/TARGET.py [-max_total_time=SECONDS] [-runs=N] [-seed=N] DIRECTORY *

The words are libFuzzer's. Every file of the directories is an example to begin with; bytes that raise anything are
written into the first directory, and the exit status is 1.
"""  # noqa: INP001  # targets are scripts, their directory is no package

import sys
import time
import traceback
from collections.abc import Callable
from hashlib import blake2b
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from weft.base.chance import Chance
from weft.base.errors import PeerError

Target = Callable[[bytes], None]
BYTES_MAX: Final = 4_096
KEPT_MAX: Final = 4_000
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
    ]
)


def attempt(does: Callable[..., Any], *given: Any) -> tuple[str, Any]:
    """What comes of it: `accepted` and the outcome, or the code of the refusal and nothing."""
    try:
        return "accepted", does(*given)
    except PeerError as error:
        return error.code, None


def run(target: Target) -> None:
    """Call the target with one input after the other, as the command line says; never returns."""
    if find_spec("atheris"):
        import atheris  # type: ignore[import-not-found]  # installed where coverage is wanted

        atheris.instrument_all()
        atheris.Setup(sys.argv, target)
        atheris.Fuzz()
    sys.exit(_mutate(target, sys.argv[1:]))


def _mutate(target: Target, arguments: list[str]) -> int:
    flags = dict(word.lstrip("-").split("=", 1) for word in arguments if word.startswith("-"))
    places = [Path(word) for word in arguments if not word.startswith("-")]
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
    try:
        target(data)
    except Exception:  # noqa: BLE001  # whatever it is, it is what was looked for
        found = (places or [Path()])[0] / f"crash-{blake2b(data, digest_size=8).hexdigest()}"
        found.write_bytes(data)
        sys.stderr.write(f"{traceback.format_exc()}\nby {len(data)} bytes, kept in {found}\n")
        return False
    return True


def _mutated(chance: Chance, kept: list[bytes]) -> bytes:
    data = bytearray(chance.choice(kept))
    for _ in range(chance.randint(1, 3)):
        start, piece = chance.randint(0, len(data)), _piece(chance, kept)
        gone = len(piece) if chance.random() < 0.7 else chance.choice((0, 1, 2, 8))
        data[start : start + gone] = piece  # mostly in place of as many: lengths around it stay right
    return bytes(data[:BYTES_MAX])


def _piece(chance: Chance, kept: list[bytes]) -> bytes:
    """What is put in: any byte, a strange head, or a part of another example."""
    kind = chance.randrange(4)
    if kind == 0:
        return bytes((chance.randrange(256),))
    if kind == 1:
        return chance.choice(STRANGE)
    if kind == 2:
        return b"" if chance.random() < 0.3 else bytes((chance.randrange(256), chance.randrange(256)))
    other = chance.choice(kept)
    start = chance.randint(0, len(other))
    return other[start : start + chance.randint(1, 24)]

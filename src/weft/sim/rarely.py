"""Rare branches of cores that some runs take on purpose (SIM-009).

A core asks its chance by name (`Chance.rarely`) whether to do in many small steps what it does in few large ones. In a
node of the shell the answer is always no. So a situation that a real fleet meets once a year is met here every night.
"""

from typing import Final

from weft.base.chance import Chance

RARE: Final[dict[str, str]] = {
    "one pair in a portion": "configuration: each pair of a snapshot is said, confirmed and counted alone",
    "a window of one message": "carrier: a parent takes one message of a child before it answers",
    "a spool that is on disk only": "carrier: what goes up is read back from the journal before it is sent",
    "what is safe is passed on at once": "carrier: each safe record is written down and passed on alone",
    "one change in a message": "store: changes are not joined to batches",
    "a snapshot of one pair is packed": "configuration: pairs are packed in a snapshot of any size",
}
"""The names, and the places where cores ask for them."""
SHARE: Final = 0.1  # of the runs, for each


def draw_rare(seed: str) -> tuple[str, ...]:
    """The rare branches of a run."""
    chance = Chance(f"{seed}/rare")
    return tuple(name for name in RARE if chance.random() < SHARE)

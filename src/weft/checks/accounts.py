"""Checks a node's counts of messages: taken = passed on + ended (by reason) + held, on every stretch of the road (FLD-020).

The numbers are those of a node's status, `cores.chains.mail` and `cores.carrier`, so the same check judges a simulated node
and a real one: `weft status --json`. Held messages are counted in the links and queues, not computed from other numbers.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple


class Stretch(NamedTuple):
    """What became of the messages on one part of the road, since the node started."""

    name: str
    taken: int
    passed: int
    ended: dict[str, int]
    """By reason."""
    held: int

    @property
    def missing(self) -> int:
        """How many messages are unaccounted for; below zero: how many are counted twice."""
        return self.taken - self.passed - sum(self.ended.values()) - self.held


def stretches(mail: Mapping[str, Any], carrier: Mapping[str, Any]) -> list[Stretch]:
    """The road through a node: what its programs send, its two chains, what readers confirm, what other nodes send it."""
    sends, copies = mail["sends"], mail["copies"]
    made = [Stretch("sends of programs", sends["heard"], mail["ways"]["out"]["accepted"], _ended(sends), 0)]
    for way, flow in mail["ways"].items():
        made.append(Stretch(f"chain {way}", flow["accepted"], flow["delivered"], dict(flow["ended"]), flow["held"]))
    made.append(
        Stretch("copies to confirm", copies["accepted"], copies["delivered"], dict(copies["ended"]), copies["held"])
    )
    names = ("repeated", "ahead", "known", "expired", "turned_away", "held_back")
    ended = {name: carrier[name] for name in names}
    made.append(Stretch("arrivals of other nodes", carrier["received"], carrier["accepted"], ended, 0))
    return made


def _ended(sends: Mapping[str, Any]) -> dict[str, int]:
    return {**sends["refused"], "repeated": sends["repeated"]}


def unaccounted(status: Mapping[str, Any]) -> list[str]:
    """A sentence for every stretch of a node's status that does not add up."""
    cores = status["cores"]
    return [
        f"{stretch.name}: {stretch.taken} taken, {stretch.missing} of them neither passed on, ended nor held"
        for stretch in stretches(cores["chains"]["mail"], cores["carrier"])
        if stretch.missing
    ]

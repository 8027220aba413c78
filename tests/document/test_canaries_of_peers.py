"""Bugs that are planted among the peers, and the checks that turn red by them."""

from collections.abc import Callable

import pytest

from tests.document.meshnet import MeshNet
from tests.document.rig import Lone, transcripts
from tests.document.test_introductions import test_joining_in_turn_takes_about_one_introduction_per_pair as joining
from tests.document.test_mesh import test_everybody_says_one_helo_and_one_bout_to_everybody as counting
from tests.document.test_times import test_who_has_a_time_keeps_it_and_tells_of_two_seconds_and_more as keeping
from tests.document.test_transcripts import play, staged
from weft.cores.document.introductions import Introductions
from weft.cores.document.mesh import Mesh
from weft.cores.document.peers import Peer, Saying
from weft.cores.document.times import Times

Plant = Callable[[pytest.MonkeyPatch], None]


def transcript(name: str) -> None:
    lines = transcripts(name)[name]
    play(lines, staged(Lone, lines[0]))


def answer_bout_always(patch: pytest.MonkeyPatch) -> None:
    join = Mesh.join

    def joined(self: Mesh, peer: Peer, about: object = None) -> None:
        join(self, peer, about)
        self._say_bout(peer)

    patch.setattr(Mesh, "join", joined)
    patch.setattr(Saying, "may_answer", lambda self, now: True)


def forward_whom_a_peer_told(patch: pytest.MonkeyPatch) -> None:
    introduce = Introductions._introduce

    def forward(self: Introductions, peer: Peer) -> None:
        self._named.clear()
        introduce(self, peer)

    patch.setattr(Introductions, "_introduce", forward)


def adopt_any_time(patch: pytest.MonkeyPatch) -> None:
    compare = Times._compare

    def adopt(self: Times, peer: Peer, theirs: int) -> None:
        self.is_virgin = True
        compare(self, peer, theirs)

    patch.setattr(Times, "_compare", adopt)


@pytest.mark.prove("a life for each bug")
@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (answer_bout_always, lambda: transcript("T01")),
        (answer_bout_always, lambda: transcript("T05")),
        (answer_bout_always, lambda: counting(2)),
        (forward_whom_a_peer_told, lambda: transcript("T07")),
        (forward_whom_a_peer_told, lambda: joining(16, 3)),
        (adopt_any_time, keeping),
    ],
)
def test_a_planted_bug_turns_its_check_red(
    plant: Plant, check: Callable[[], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    check()
    plant(monkeypatch)
    limit = 20_000
    step = MeshNet._step

    def bounded(self: MeshNet, at: int) -> None:
        assert self.said.total() < limit, "they answer one another for ever"
        step(self, at)

    monkeypatch.setattr(MeshNet, "_step", bounded)
    with pytest.raises(AssertionError):
        check()

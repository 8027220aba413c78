"""The transcripts of the vectors, fed to a sensor's replica in order, as bytes."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from weft.base.chance import Chance
from weft.base.effects import Connect, Effect, Send, Source
from weft.base.now import SECOND, Now
from weft.cores.configuration.core import Configuration
from weft.cores.configuration.messages import ConfigurationSettings, FollowParent
from weft.wire import replication as codec

VECTORS = Path(__file__).parents[1] / "vectors" / "config-strict.jsonl"
NOW = Now(SECOND, SECOND)
Step = dict[str, Any]


def transcripts() -> dict[str, list[Step]]:
    """Steps by transcript, in order."""
    found: dict[str, list[Step]] = {}
    for line in VECTORS.read_text("utf-8").splitlines():
        vector = json.loads(line)
        if vector["id"].startswith("tr-"):
            found.setdefault(vector["means"]["transcript"], []).append(vector)
    return {name: sorted(steps, key=lambda step: step["means"]["step"]) for name, steps in found.items()}


class Child:
    """A sensor's replica whose parent is the transcript."""

    def __init__(self, topics: tuple[str, ...]) -> None:
        self.core = Configuration(ConfigurationSettings(), b"s" * 16, Chance("vectors"))
        self.tags: dict[str, bytes] = {}
        self.asked: list[str] = []
        self.core.command(FollowParent("10.0.0.2:27500", topics, False), NOW)
        self.do()

    def do(self) -> list[Effect]:
        effects = self.core.effects()
        for effect in effects:
            if isinstance(effect, Connect):
                self.tags[effect.channel] = effect.tag
            elif isinstance(effect, Send):
                self.asked.append(effect.message.subtree)
        return effects

    def hear(self, step: Step) -> None:
        frames = [bytes.fromhex(frame) for frame in step["frames"]]
        self.asked.clear()
        if "PUB" in step["direction"]:
            self.core.receive(codec.decode_update(frames), Source("updates", self.tags["updates"]), NOW)
        else:
            self.core.receive(codec.decode_answer(frames), Source("ask", self.tags["ask"]), NOW)
        self.do()

    def facts(self) -> Iterator[tuple[str, Any]]:
        """Everything that a transcript may expect."""
        store = self.core.store
        values = {key.rpartition("/")[2]: json.loads(pair.value) for key, pair in store.pairs.items()}
        yield "state", self.core.state.name
        yield "store", {name: value["rate"] for name, value in values.items() if isinstance(value, dict)}
        yield "last", store.number
        yield "epoch", codec.epoch_of(store.number)
        yield "pending", [update.number for update in self.core.replica.waiting]


@pytest.mark.proves("CFG-032", "CFG-034", "CFG-035")
@pytest.mark.parametrize("name", transcripts())
def test_transcript_of_a_sensor(name: str) -> None:
    play(name)


def decoded(step: Step) -> Any:
    return codec.decode_ask([bytes.fromhex(frame) for frame in step["frames"]]).message


def play(name: str) -> None:
    steps = transcripts()[name]
    topics = tuple(steps[0]["means"].get("topics", ["/CONFIG/web/"]))
    child = Child(topics)
    assert list(topics) == child.asked
    for step in steps:
        means = step["means"]
        counter = means.get("counter", "attempts")
        before = getattr(child.core.counters, counter)
        if means.get("expect") == "sent":
            assert [codec.ICanHaz(topic) for topic in topics] == [decoded(step)]
            continue
        child.hear(step)
        facts = dict(child.facts())
        expected = {fact: means[fact] for fact in facts if fact in means}
        assert expected == {fact: facts[fact] for fact in expected}, step["id"]
        if "counter" in means:
            assert before + 1 == getattr(child.core.counters, counter), step["id"]
        if means.get("expect") == "sent st-icanhaz":
            assert list(topics) == child.asked, step["id"]


def test_every_transcript_is_played() -> None:
    assert ["dup", "early", "epoch", "filtered", "gap", "leftover", "lower", "telltale"] == sorted(transcripts())

"""Power cuts (FLT-030): what a start finds is whole turns, in order, with all that was ever promised."""

from collections.abc import Iterator

import pytest

from tests.journal.model import STATE, Driver, Said, kill, reopen, stop
from weft.testing.disk import Image, MemoryFiles, RecordingFiles, crash_images
from weft.wire.segments import Verdict


def recorded(seed: str, steps: int) -> RecordingFiles:
    """The disk of a node that has lived for so many steps."""
    inner = MemoryFiles()
    inner.directories.add(STATE)
    files = RecordingFiles(inner)
    driver = Driver(files, seed)
    driver.start()
    driver.run(steps)
    return files


def check_image(image: Image) -> None:
    """A start on what a power cut left keeps every promise, finds no damage, and a second one finds the same."""
    said = [message for message in image.sent if isinstance(message, Said)]
    promised = max((message.turn for message in said), default=0)
    files = image.files()
    files.directories.add(STATE)
    journal, recovery, found = reopen(files)
    assert promised <= found.last_turn, f"{image.name}: turn {promised} was promised"
    assert {Verdict.CLEAN, Verdict.TORN} >= {note.verdict for note in recovery.notes}, (
        f"{image.name}: {recovery.verdicts}"
    )
    assert found.damages == (), image.name
    assert max((message.next_lsn for message in said), default=1) <= journal.next_lsn, image.name
    kill(files)
    again, _, found_again = reopen(files)
    assert found == found_again, f"{image.name}: recovered twice is not recovered once"
    stop(again)


def images(seed: str, steps: int, count: int) -> Iterator[Image]:
    yield from crash_images(recorded(seed, steps), seed, count)


@pytest.mark.proves("FLT-030", "JRN-001", "JRN-002", "JRN-012", "JRN-040")
@pytest.mark.parametrize("life", range(8))
def test_a_power_cut_at_any_instant_loses_nothing_that_was_promised(life: int, soak: bool) -> None:
    for image in images(f"life-{life}", 400 if soak else 120, 2_500 if soak else 60):
        check_image(image)


@pytest.mark.proves("JRN-004", "JRN-025")
@pytest.mark.parametrize("life", range(4))
def test_a_power_cut_in_the_middle_of_a_recovery_changes_nothing(life: int, soak: bool) -> None:
    for image in images(f"twice-{life}", 120, 500 if soak else 12):
        files = RecordingFiles(image.files(), image.content)
        for message in image.sent:
            files.note_sent(message)
        driver = Driver(files, image.name)
        driver.start()
        driver.run(3)
        for second in crash_images(files, image.name, 20 if soak else 4):
            check_image(second)

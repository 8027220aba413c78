"""A disk that says no: at every call of a life, in every way; and what the state table says about it (JRN, section 5.4)."""

import pytest

from tests.journal.model import STATE, Driver, Said, kill, reopen, stop
from tests.journal.test_crash import check_image
from weft.base.errors import StorageFailed
from weft.testing.disk import Fault, FaultyFiles, MemoryFiles, RecordingFiles, crash_images

STEPS = 50


def life(seed: str, at: int | None, fault: Fault) -> tuple[Driver, FaultyFiles]:
    inner = MemoryFiles()
    inner.directories.add(STATE)
    faulty = FaultyFiles(inner, at, fault)
    driver = Driver(RecordingFiles(faulty), seed)
    try:
        driver.start()
    except StorageFailed:
        driver.failures += 1
        driver.start_again()
    driver.run(STEPS)
    return driver, faulty


def check_life(driver: Driver, name: str, power_cuts: int) -> None:
    """After a kill, and after power cuts at any instant of that life, every promise holds."""
    promised = max((step.sent.turn for step in driver.files.log if isinstance(step.sent, Said)), default=0)
    kill(driver.files)
    journal, _, found = reopen(driver.files)
    assert promised <= found.last_turn, f"{name}: turn {promised} was promised"
    stop(journal)
    for image in crash_images(driver.files, name, power_cuts):
        check_image(image)


CALLS = len(life("faults", None, Fault.BROKEN)[1].log)


@pytest.mark.proves("JRN-004", "JRN-005", "JRN-025", "FLT-032")
@pytest.mark.proves("FLT-019", part="of the journal: each call that writes or syncs")
@pytest.mark.varies(
    "fault, first, step",
    [(Fault.READ_ONLY, 0, 3)],
    [(fault, 0, 1) for fault in Fault],
    prove=[
        (Fault.READ_ONLY, 1, 3),
        (Fault.READ_ONLY, 2, 3),
        *((one, 0, 1) for one in Fault if one is not Fault.READ_ONLY),
    ],
)
def test_a_call_that_fails_at_any_point_of_a_life_costs_no_promise(
    fault: Fault, first: int, step: int, soak: bool
) -> None:
    assert CALLS > 150
    hits, calls = 0, range(first, CALLS, step)
    for at in calls:
        driver, faulty = life("faults", at, fault)
        hits += faulty.hit is not None
        faulty.mend()
        check_life(driver, f"{fault.name}-{at}", 50 if soak else 1)
    assert hits > (len(calls) // 4 if fault is Fault.SHORT else len(calls) - 5)

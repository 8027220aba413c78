"""One switch, `--soak`, is all that makes tests take their time."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]
TEST = """
import pytest
@pytest.mark.varies("seed", range(2), range(5))
def test_seed(seed): ...
@pytest.mark.soak
def test_long(): ...
def test_told(soak): assert soak is {soak}
"""


@pytest.mark.parametrize("words, passed", [((), 3), (("--soak",), 7)])
def test_the_switch_plays_more_seeds_and_what_is_left_out_otherwise(
    words: tuple[str, ...], passed: int, pytester: pytest.Pytester
) -> None:
    pytester.makeini("[pytest]\nmarkers =\n    soak: x\n    varies(names, usual, soaked): x\n    proves(*ids): x")
    pytester.makeconftest(
        "from tests.conftest import pytest_addoption, pytest_collection_modifyitems, pytest_generate_tests, soak"
    )
    pytester.makepyfile(TEST.format(soak=bool(words)))
    pytester.runpytest_inprocess(*words).assert_outcomes(passed=passed)


def test_make_soak_says_it_and_nothing_listens_to_another_switch() -> None:
    assert "-m pytest --soak " in (ROOT / "Makefile").read_text("utf-8")
    others = [path for path in (ROOT / "tests").rglob("*.py") if "WEFT_SOAK" in path.read_text("utf-8")]
    assert [Path(__file__)] == others

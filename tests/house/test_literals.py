"""A figure that was promised stands in its test as a figure (FLD-043)."""

import pytest

from tests.house import literals
from tests.tidy.tree import parsed


@pytest.mark.proves("FLD-043", part="no test expects a limit or another named number of the product of itself")
def test_no_test_expects_a_limit_of_itself() -> None:
    assert [] == literals.findings()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("assert limits.PEERS_MAX == len(peers)", [2]),
        ("assert (1, limits.PEERS_MAX) == (a, b)", [2]),
        ("assert 256 == len(peers)", []),
        ("assert limits.PEERS_MAX == 256", []),
        ("assert (256, 1 << 20) == (limits.PEERS_MAX, limits.BYTES_MAX)", []),
        ("patch.setattr(limits, 'PEERS_MAX', 2)\n    assert limits.PEERS_MAX == len(peers)", []),
    ],
)
def test_which_asserts_follow_the_program(text: str, expected: list[int]) -> None:
    assert expected == list(literals.lines(parsed(f"def test():\n    {text}")))


IMPORTS = "from weft.shell import mqtt\nfrom weft.shell.mqtt import QUEUE, RETRY as AGAIN\n"


@pytest.mark.parametrize(
    "text, expected",
    [
        ("assert QUEUE == len(taken)", [4]),
        ("assert mqtt.QUEUE == len(taken)", [4]),
        ("assert {2 * AGAIN} == waits", [4]),
        ("assert 10_000 == len(taken)", []),
        ("assert 10_000 == QUEUE", []),
        ("assert (10_000, -2 * 3) == (QUEUE, AGAIN)", []),
        ("assert OTHER == len(taken)", []),
        ("assert len(taken) < QUEUE", []),
    ],
)
def test_which_asserts_follow_a_named_number(text: str, expected: list[int]) -> None:
    module = parsed(f"{IMPORTS}def test():\n    {text}")
    assert expected == list(literals.named_lines(module, frozenset({"weft.shell.mqtt.QUEUE", "weft.shell.mqtt.RETRY"})))


def test_which_numbers_of_the_product_stand_in_no_figure() -> None:
    numbers = literals.open_numbers()
    assert {"weft.shell.mqtt.QUEUE", "weft.node.channels.VALUES_BUDGET"} <= numbers
    assert set() == numbers & {
        "weft.base.now.SECOND",
        "weft.shell.docdoors.QUEUE",
        "weft.cores.carrier.limits.HOP_BYTES",
    }

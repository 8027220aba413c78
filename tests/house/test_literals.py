"""A figure that was promised stands in its test as a figure (FLD-043)."""

import ast

import pytest

from tests.house import literals


@pytest.mark.proves("FLD-043", part="no test expects the limit under test of itself")
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
    assert expected == list(literals.lines(ast.parse(f"def test():\n    {text}")))

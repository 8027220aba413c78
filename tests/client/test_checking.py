"""What no node could read as a registration is told at once, and by its own word."""

from typing import Any

import pytest

import weft
from weft.base.errors import UserError


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"on": "up"}, "on='up'"),
        ({"fail": "never"}, "fail='never'"),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": 3_601}, "timeout=3601"),
        ({"parallel": 0}, "parallel=0"),
        ({"window": 65_537}, "65,537"),
    ],
)
def test_a_registration_that_no_node_can_read_is_refused_before_it_is_said(wrong: dict[str, Any], word: str) -> None:
    chain = weft.chain_client("x")
    with pytest.raises(UserError) as told:
        chain.rewrites("demo.report", **wrong)(lambda message: message)
    assert ("bad-registration", True) == (told.value.code, word in told.value.text)
    assert {} == chain.links


@pytest.mark.parametrize("name", ["", "n" * 65])
def test_a_client_has_a_name_that_a_node_can_read(name: str) -> None:
    with pytest.raises(UserError) as told:
        weft.chain_client(name)
    assert "bad-name" == told.value.code

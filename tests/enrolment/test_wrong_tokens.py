"""Who guesses tokens keeps nobody else waiting (SEC-053)."""

import pytest

from tests.enrolment.test_enrolment import Root, code_of
from weft.base.now import SECOND


@pytest.mark.proves(
    "SEC-053", part="five wrong tokens a minute of one address, which is not looked at for its rest; others are"
)
def test_an_address_that_was_wrong_five_times_keeps_nobody_else_waiting() -> None:
    root = Root()
    idents = [root.invite() for _ in range(3)]
    heard = []
    for n in range(40):
        root.advance(SECOND)
        heard.append(code_of(root.guess(idents[n % 2], "10.0.0.66")))
    assert ["bad-proof"] * 5 + ["busy"] * 35 == heard
    assert ["OPEN"] * 3 == [root.state(ident) for ident in idents]
    assert "bad-proof" == code_of(root.guess(idents[0], "10.0.0.67"))
    assert "Welcome" == code_of(root.join(idents[2]))
    root.advance(21 * SECOND)
    assert "bad-proof" == code_of(root.guess(idents[0], "10.0.0.66"))

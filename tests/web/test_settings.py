"""What a board is told (JAM-020): words, JSON, standard input; and what is refused."""

import io
import json

import pytest

from weft.base.errors import UserError
from weft.web.settings import Settings, settings_of


def told(*words: str, stdin: str = "") -> Settings:
    return settings_of(words, io.StringIO(stdin))


def test_words_json_and_standard_input_say_the_same() -> None:
    text = json.dumps({"node": "ipc:///x/doc.sock", "session": "Hall 5", "port": 8_100})
    expected = Settings(node="ipc:///x/doc.sock", session="Hall 5", port=8_100)
    assert expected == told("ipc:///x/doc.sock", "Hall 5", "--port", "8100")
    assert expected == told(text)
    assert expected == told("-", stdin=text)


@pytest.mark.proves("JAM-020")
def test_a_board_is_on_loopback_unless_it_is_given_an_address_and_a_token() -> None:
    alone = told("ipc:///x", "S")
    assert ("127.0.0.1", 8_090, True) == (alone.host, alone.port, alone.is_loopback)
    assert not told("ipc:///x", "S", "--host", "0.0.0.0", "--token", "long enough").is_loopback
    assert told('{"node": "x", "host": "::1"}').is_loopback
    with pytest.raises(UserError) as refused:
        told("ipc:///x", "S", "--host", "0.0.0.0")
    assert "usage" == refused.value.code


@pytest.mark.parametrize(
    "words",
    [
        ('{"node": 5}',),
        ('{"nodes": "x"}',),
        ("no json",),
        ("ipc:///x", "S", "--port", "70000"),
        ("x", "--token", "short"),
    ],
)
def test_settings_that_are_none_are_refused(words: tuple[str, ...]) -> None:
    with pytest.raises(UserError) as refused:
        told(*words)
    assert "usage" == refused.value.code

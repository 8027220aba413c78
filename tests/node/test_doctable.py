"""`[doc]` of a node's file: what it may say, and what the core is told of it."""

from typing import Any

import pytest

from weft.base.chance import Chance
from weft.base.errors import UserError
from weft.node.doctable import fresh_uuid, settings_of_session
from weft.node.settings import NodeSettings, settings_of

SCHEMA = """
name = "minutes"
root = "minutes"
"""


def settings(doc: dict[str, Any], **more: Any) -> NodeSettings:
    return settings_of({"node": {"name": "a", "level": "root"}, "doc": doc, **more})


def test_a_session_becomes_settings_with_its_times_in_nanoseconds() -> None:
    table = settings({"session": {"friday": {"peers": ["10.0.0.1:50000"]}}, "timing": {"beat": "2s"}}).doc
    assert table is not None
    found = settings_of_session("friday", table.session["friday"], table.timing, b"u" * 16)
    assert ("friday", ("10.0.0.1:50000",), 2_000_000_000, "friday") == (
        found.name,
        found.peers,
        found.timing.beat_ns,
        found.text,
    )


@pytest.mark.parametrize("port", [-1, 65_536])
def test_a_port_that_is_none_is_refused(port: int) -> None:
    with pytest.raises(UserError):
        settings({"session": {"friday": {"serve": port}}})


@pytest.mark.proves("PEE-011")
def test_a_schema_of_ones_own_stands_in_the_session_string_with_a_hash_of_what_it_says() -> None:
    def text_of(schema: str) -> str:
        table = settings({"session": {"friday": {"schema": schema}}}).doc
        assert table is not None
        return settings_of_session("friday", table.session["friday"], table.timing, b"u" * 16).text

    assert "friday;schema=plain" == text_of("plain")
    assert text_of(SCHEMA).startswith("friday;schema=minutes-")
    assert text_of(SCHEMA) != text_of(SCHEMA + "\n# another text\n")


@pytest.mark.parametrize(
    "doc, code",
    [
        ({"session": {"a/b": {}}}, "E15"),
        ({"session": {" friday": {}}}, "E15"),
        ({"session": {"x" * 65: {}}}, "E15"),
        ({"session": {"friday": {"advertise": "no host"}}}, "E05"),
        ({"session": {"friday": {"peers": ["10.0.0.1"]}}}, "E05"),
        ({"session": {"friday": {"peers": ["laptop.local:50000"]}}}, "E05"),
        ({"session": {"friday": {"serve_host": "10.0.0.1", "serve": 8080}}}, "E05"),
        ({"session": {"friday": {"schema": "unheard"}}}, "E04"),
        ({"session": {"friday": {"serve": 8080, "token": "sesame"}}}, "E04"),
        ({"session": {str(number): {} for number in range(65)}}, "E04"),
        ({"timing": {"beat": "1ms"}}, "E04"),
    ],
)
def test_what_cannot_be_is_said_with_its_code(doc: dict[str, Any], code: str) -> None:
    with pytest.raises(UserError) as refused:
        settings(doc)
    assert code in str(refused.value)


def test_a_session_may_listen_beyond_this_machine_where_the_file_asks_for_an_open_network() -> None:
    opened = settings(
        {"session": {"friday": {"listen": "10.0.0.1"}}}, security={"mode": "none", "allow_insecure": True}
    )
    assert "document" in opened.runs


@pytest.mark.proves("PEE-003")
def test_a_fresh_source_is_of_version_4_and_never_begins_with_0() -> None:
    drawn = {fresh_uuid(Chance(str(number))) for number in range(2_000)}
    assert 2_000 == len(drawn)
    assert {(4, 2)} == {(uuid[6] >> 4, uuid[8] >> 6) for uuid in drawn}
    assert 0 not in {uuid[0] for uuid in drawn}


def test_who_starts_it_is_told_of_every_host_on_which_it_listens() -> None:
    doc = {"session": {"a": {"listen": "0.0.0.0:50000"}, "b": {"listen": "0.0.0.0"}, "c": {}}}
    opened = settings(doc, security={"mode": "none", "allow_insecure": True}, catalog={"host": "::"})
    assert ("127.0.0.1", "::", "0.0.0.0") == opened.hosts

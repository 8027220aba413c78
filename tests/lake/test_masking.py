"""Secrets never enter a segment (LAK-014): what a key pattern hides, and the users of a store (ADM-002)."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.lake.records import NODE_A, RECEIVED, rows_of
from weft.base.errors import UserError
from weft.base.records import Record, Stream, StreamRecord
from weft.cli.drain import drain
from weft.lake.body import Mask
from weft.lake.changes import is_of_users
from weft.lake.layout import Layout
from weft.lake.segments import Place, write_segment
from weft.shell.files import Files
from weft.shell.journal import Journal
from weft.shell.masking import mask_beside, mask_of
from weft.wire.store.path import pack_path, text_of

SECRET = b"hunter2"
PATTERNS = ("/app/*/password", "/keys/**")


def written(key: str, value: bytes, number: int) -> Record:
    """A write of the configuration."""
    return StreamRecord(Stream.CONFIGURATION, "root", 1, number, RECEIVED, RECEIVED, key, value, {"who": "joe"})


def changed(path: tuple[Any, ...], tick: int, value: bytes) -> StreamRecord:
    """A change of the store; its value is text."""
    said = {"path": pack_path(path), "chain": [["n", tick]], "tock": 1, "deleted": not value}
    packed = bytes([0xA0 + len(value)]) + value if value else b""
    return StreamRecord(Stream.STORE, "n", None, tick, RECEIVED, RECEIVED, text_of(path), packed, said)


CONFIGURATION = (
    written("/app/db/password", SECRET, 1),
    written("/app/mail/password", SECRET, 2),
    written("/keys/a/b", SECRET * 200_000, 3),
    written("/app/db/host", b"10.0.0.7", 4),
    written("/app/db/password", b"", 5),
)
STORE = (
    changed((None, "auth", "_", "user", "joe"), 1, SECRET),
    changed(("a", "auth"), 2, b"open"),
    changed((None, "auth", "_", "user", "joe"), 3, b""),
)


def leaks(lake: Layout) -> list[dict[str, Any]]:
    """Rows in which the secret can be read, in whatever column."""
    rows = [*rows_of(lake, "configuration"), *rows_of(lake, "store")]
    return [row for row in rows if SECRET.decode() in repr(row)]


def fill(lake: Layout, mask: Mask | None) -> None:
    drain_id = "6f1c2a345b6d4e7f8091a2b3c4d5e6f7"
    for stream, records in (("configuration", CONFIGURATION), ("store", STORE)):
        write_segment(lake, Place(stream, drain_id, 1), list(enumerate(records, 1)), mask=mask)


@pytest.mark.proves("LAK-014")
def test_no_column_holds_a_secret_and_equal_secrets_look_equal(tmp_path: Path) -> None:
    lake = Layout(tmp_path / "lake")
    fill(lake, mask_of(tmp_path, PATTERNS))
    assert [] == leaks(lake)
    first, second, third, host, deleted = rows_of(lake, "configuration")
    assert first["body"] == second["body"] != third["body"]
    assert first["body"].startswith('{"$masked":"')
    assert ('{"$b":"MTAuMC4wLjc="}', b"10.0.0.7") == (host["body"], host["raw"])
    assert deleted["body"] is None, "a deletion hides nothing"
    user, other, gone = rows_of(lake, "store")
    assert user["body"].startswith('{"$masked":"')
    assert (":n.auth", None) == (user["key"][:7], user["raw"])
    assert ('"open"', None) == (other["body"], gone["body"])


@pytest.mark.parametrize("careless", [None, Mask(lambda _: False, b"k")])
def test_a_secret_in_a_segment_is_found(careless: Mask | None, tmp_path: Path) -> None:
    lake = Layout(tmp_path / "lake")
    fill(lake, careless)
    assert leaks(lake)


def test_the_key_outlives_restarts_is_nobody_elses_and_its_patterns_may_change(tmp_path: Path) -> None:
    before = mask_of(tmp_path, PATTERNS)
    again = mask_of(tmp_path, ("/other",))
    assert before.body(SECRET) == again.body(SECRET)
    assert (True, False, True) == (before.is_secret("/keys/x"), again.is_secret("/keys/x"), again.is_secret("/other"))
    assert 0o600 == (tmp_path / "drain.json").stat().st_mode & 0o777
    (tmp_path / "drain.json").write_text("{", "utf-8")
    with pytest.raises(UserError, match="damaged"):
        mask_of(tmp_path, PATTERNS)


@pytest.mark.proves("LAK-014")
def test_the_journal_of_a_dead_root_is_drained_by_hand_with_its_own_mask(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    mask = mask_of(tmp_path / "state", PATTERNS)
    journal, _ = Journal.open(tmp_path / "state" / "journal", NODE_A, Files(), RECEIVED, 64 << 20)
    journal.write([*CONFIGURATION, *STORE], RECEIVED)
    journal.close(RECEIVED)
    drain(tmp_path / "state" / "journal", lake=tmp_path / "lake")
    rows = rows_of(Layout(tmp_path / "lake"), "configuration", NODE_A.hex())
    assert mask.body(SECRET) == rows[0]["body"]
    assert [] == [row for row in rows if SECRET.decode() in repr(row)]
    assert mask_beside(tmp_path / "journal").body(SECRET) != mask.body(SECRET), "who never drained has no key to share"


def test_a_path_that_cannot_be_read_is_hidden() -> None:
    assert is_of_users(changed((None, "auth"), 1, SECRET))
    unread = changed(("a",), 1, SECRET)
    unread.attributes["path"] = b"\xc1"
    assert is_of_users(unread)


@pytest.mark.proves("PIP-088", part="modes of what is drained")
def test_what_a_lake_holds_is_nobody_elses(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        fill(Layout(tmp_path / "lake"), None)
    finally:
        os.umask(before)
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "lake").rglob("*") if path.is_file()}
    assert {0o600} == modes
    assert {0o700} == {path.stat().st_mode & 0o777 for path in (tmp_path / "lake").rglob("*") if path.is_dir()}
    assert 0o700 == (tmp_path / "lake").stat().st_mode & 0o777

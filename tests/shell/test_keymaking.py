"""The keys of a node on disk: who may read them, what shows them, and where a node listens since its first invitation."""

from pathlib import Path

import pytest
import zmq.auth

from weft.base.errors import UserError
from weft.node.settings import settings_of
from weft.shell.identity import Identity
from weft.shell.keymaking import addressed, found_fabric, keep_address, make_keys, new_pair, write_keys
from weft.shell.keys import load_keys, load_known

WHO = Identity("0f" * 16, "root", 7, "5e" * 32)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.mark.proves("SEC-004")
def test_a_pair_is_made_once_and_nobody_else_may_read_it(tmp_path: Path) -> None:
    made = make_keys(tmp_path)
    assert made == make_keys(tmp_path) == load_keys(tmp_path)
    assert (0o700, 0o600) == (mode_of(tmp_path / "keys"), mode_of(tmp_path / "keys" / "node.key_secret"))
    public, secret = zmq.auth.load_certificate(tmp_path / "keys" / "node.key_secret")
    assert (made.public, made.secret) == (public.decode(), (secret or b"").decode())
    assert (made.public.encode(), None) == zmq.auth.load_certificate(tmp_path / "keys" / "node.key")


@pytest.mark.proves("SEC-004")
@pytest.mark.parametrize("name, mode", [("keys/node.key_secret", 0o640), ("keys", 0o750)])
def test_keys_that_others_may_read_are_not_used_and_a_mend_is_said(tmp_path: Path, name: str, mode: int) -> None:
    make_keys(tmp_path)
    (tmp_path / name).chmod(mode)
    with pytest.raises(UserError) as refused:
        make_keys(tmp_path)
    assert ("open-keys", True) == (refused.value.code, "chmod 600" in refused.value.try_this)


def test_a_root_knows_itself_and_keeps_the_secret_of_its_fabric(tmp_path: Path) -> None:
    pair = found_fabric(tmp_path, WHO, "10.0.0.1:27500")
    known = load_known(tmp_path)
    assert found_fabric(tmp_path, WHO, "10.0.0.1:27500") == pair
    assert {"10.0.0.1:27500": WHO.node} == known.places
    assert (("collector",), (pair.public,)) == (known.bindings[WHO.node].roles, known.bindings[WHO.node].curve)
    assert (64, known.beacon_key) == (len(known.beacon_key), load_known(tmp_path).beacon_key)


@pytest.mark.proves("SEC-047", part="what keys show of themselves")
def test_what_is_printed_of_keys_shows_no_secret(tmp_path: Path) -> None:
    pair = write_keys(tmp_path, new_pair())
    found_fabric(tmp_path, WHO, "10.0.0.1:27500")
    known = load_known(tmp_path)
    shown = f"{pair}{pair!r}{[pair]}{known}{known!r}"
    assert [] == [secret for secret in (pair.secret, known.beacon_key) if secret in shown]


@pytest.mark.parametrize(
    "own, expected", [("127.0.0.1", "10.0.0.1"), ("127.0.0.2", "10.0.0.1"), ("192.168.7.7", "192.168.7.7")]
)
def test_the_address_of_an_invitation_stands_in_the_place_of_loopback_only(
    tmp_path: Path, own: str, expected: str
) -> None:
    settings = settings_of({"node": {"name": "root", "level": "root", "host": own}})
    assert own == addressed(settings, tmp_path).node.host
    keep_address(tmp_path, "10.0.0.1")
    assert expected == addressed(settings, tmp_path).node.host


def test_documents_follow_the_node_to_its_address_and_the_catalog_of_programs_stays(tmp_path: Path) -> None:
    document = {"node": {"name": "root", "level": "root"}, "catalog": {}, "doc": {"session": {"minutes": {}}}}
    keep_address(tmp_path, "10.0.0.1")
    settings = addressed(settings_of(document), tmp_path)
    assert settings.doc is not None
    assert settings.catalog is not None
    assert ("10.0.0.1", "127.0.0.1") == (settings.doc.session["minutes"].listen, settings.catalog.host)


def test_an_address_that_cannot_be_read_is_said_with_its_mend(tmp_path: Path) -> None:
    (tmp_path / "address.json").write_text("{", "utf-8")
    with pytest.raises(UserError) as refused:
        addressed(settings_of({"node": {"name": "root", "level": "root"}}), tmp_path)
    assert ("bad-address", True) == (refused.value.code, "weft invite --listen" in refused.value.try_this)

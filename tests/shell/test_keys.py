"""The key files of a node: who may read them, and what they must hold."""

from pathlib import Path

import pytest
import zmq

from weft.base.errors import UserError
from weft.base.keys import Binding
from weft.shell.keys import Keys, Known, load_keys, load_known, make_folder, save_known

UUID = "61" * 16


def _write(state: Path, public: str, secret: str) -> Path:
    path = make_folder(state) / "node.key_secret"
    path.touch(0o600)
    path.write_text(f'metadata\ncurve\n    public-key = "{public}"\n    secret-key = "{secret}"\n', "utf-8")
    return path


def _pair() -> tuple[str, str]:
    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


def test_a_node_without_keys_has_none(tmp_path: Path) -> None:
    assert (None, Known()) == (load_keys(tmp_path), load_known(tmp_path))


def test_a_pair_is_read_and_its_secret_is_not_shown(tmp_path: Path) -> None:
    public, secret = _pair()
    _write(tmp_path, public, secret)
    keys = load_keys(tmp_path)
    assert Keys(public, secret) == keys
    assert f"Keys(public={public!r}, secret=...)" == repr(keys) == str(keys) == f"{keys}"


@pytest.mark.proves("SEC-004", part="wider modes end the start")
@pytest.mark.parametrize(("folder", "file"), [(0o750, 0o600), (0o701, 0o600), (0o700, 0o640), (0o700, 0o604)])
def test_a_pair_that_others_may_read_ends_the_start(tmp_path: Path, folder: int, file: int) -> None:
    path = _write(tmp_path, *_pair())
    path.chmod(file)
    path.parent.chmod(folder)
    with pytest.raises(UserError) as refused:
        load_keys(tmp_path)
    assert "open-keys" == refused.value.code


def test_what_is_no_pair_is_refused_and_not_shown(tmp_path: Path) -> None:
    (public, _), (_, secret) = _pair(), _pair()
    _write(tmp_path, public, secret)
    with pytest.raises(UserError) as refused:
        load_keys(tmp_path)
    assert "bad-keys" == refused.value.code
    assert secret not in str(refused.value)


def test_what_enrolment_told_is_kept_in_private_and_read_again(tmp_path: Path) -> None:
    binding = Binding(curve=("A" * 40,), name="root", roles=("collector",))
    known = Known(bindings={UUID: binding}, places={"10.0.0.1:27500": UUID}, beacon_key="5e" * 32)
    save_known(tmp_path, known)
    path = tmp_path / "keys" / "known.json"
    assert (known, 0o600, 0o700) == (
        load_known(tmp_path),
        path.stat().st_mode & 0o777,
        path.parent.stat().st_mode & 0o777,
    )
    assert "5e" * 32 not in repr(known)
    assert known.table().find("A" * 40) is not None


def test_a_damaged_note_of_enrolment_is_refused(tmp_path: Path) -> None:
    save_known(tmp_path, Known())
    (tmp_path / "keys" / "known.json").write_text('{"beacon_key": "short"}', "utf-8")
    with pytest.raises(UserError) as refused:
        load_known(tmp_path)
    assert "bad-keys" == refused.value.code

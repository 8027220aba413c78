"""Whose program is at the other end of a TCP connection of this machine: the kernel's word, not the address."""

import os
import socket
from pathlib import Path

import pytest

from weft.shell import kernel
from weft.shell.http.gate import Gate
from weft.shell.http.messages import JSON, Request
from weft.shell.kernel import is_same_user, uid_of

TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:9C40 0100007F:6B72 01 00000000:00000000 00:00000000 00000000  {uid}        0 1 1
   1: 0100007F:6B72 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 1 1
"""
OTHER = os.geteuid() + 4_711


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_the_kernel_says_whose_a_connection_is(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as server:
        try:
            server.bind((host, 0))
        except OSError:
            assert ":" in host  # a machine without IPv6 has no such connections
            return
        server.listen()
        with socket.create_connection(server.getsockname()[:2]) as client, server.accept()[0]:
            here, there = client.getsockname()[:2], server.getsockname()[:2]
            assert (os.geteuid(), True) == (uid_of(here, there), is_same_user(here, there))
            assert uid_of((host, 1), there) is None
            assert not is_same_user((host, 1), there)


def test_what_comes_from_another_machine_is_no_connection_of_this_one() -> None:
    assert uid_of(("192.0.2.1", 40_000), ("127.0.0.1", 27_506)) is None


@pytest.mark.proves("SEC-056", part="an order on loopback needs this user's program or the token")
@pytest.mark.parametrize(
    ("uid", "token", "is_heard"), [(os.geteuid(), "", True), (OTHER, "", False), (OTHER, "sesame", True)]
)
def test_an_order_of_another_user_of_this_machine_is_refused(
    uid: int, token: str, is_heard: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "tcp"
    table.write_text(TABLE.format(uid=uid), "ascii")
    monkeypatch.setattr(kernel, "TABLES", {socket.AF_INET: table})
    headers = {"host": "127.0.0.1:27506", "content-type": JSON, "authorization": f"Bearer {token}"}
    request = Request("POST", "/order", "", headers, "127.0.0.1", (40_000, 27_506), "127.0.0.1")
    assert is_heard == (Gate("sesame", only_user=True).refuses(request, writes=True) is None)

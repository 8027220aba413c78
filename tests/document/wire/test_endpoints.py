"""One text per place (PEE-004, PEE-005), and what cannot be called from elsewhere (PEE-012)."""

import pytest
from hypothesis import given

from tests.document.wire.strategies import ENDPOINTS
from weft.base.errors import PeerError
from weft.wire.document import endpoints


@pytest.mark.proves("PEE-005")
@pytest.mark.parametrize(
    "written, expected",
    [
        ("192.168.1.20:50001", "192.168.1.20:50001"),
        ("tcp://192.168.1.20:50001", "192.168.1.20:50001"),
        ("192.168.1.20 50001", "192.168.1.20:50001"),
        ("tcp://[FE80:0:0::1]:50001", "[fe80::1]:50001"),
        ("[::1] 1", "[::1]:1"),
        ("[::ffff:10.0.0.1]:65535", "10.0.0.1:65535"),
    ],
)
def test_endpoint_has_one_form(written: str, expected: str) -> None:
    assert expected == endpoints.parse(written)


@pytest.mark.proves("PEE-004")
@pytest.mark.parametrize(
    "written",
    [
        "",
        ":1",
        "192.168.1.20",
        "192.168.1.20:",
        "192.168.1.20:0",
        "192.168.1.20:00080",
        "192.168.1.20:65536",
        "192.168.1.20:-1",
        "192.168.1.20:\u0661",
        "192.168.1.256:1",
        "192.168.1:1",
        "192.168.01.2:1",
        "\u0661.1.1.1:1",
        "fe80::1:50001",
        "[fe80::1]",
        "[fe80::1%eth0]:50001",
        "[10.0.0.1]:50001",
        "[::1]:1\n",
        "localhost:50001",
        "laptop.local:50001",
        "udp://10.0.0.1:1",
        "tcp://tcp://10.0.0.1:1",
        " 10.0.0.1:1",
        "[" + "0" * 300 + "::1]:1",
        "\udc80:1",
    ],
)
def test_what_is_no_numeric_endpoint_is_refused(written: str) -> None:
    with pytest.raises(PeerError) as caught:
        endpoints.parse(written)
    assert "bad-endpoint" == caught.value.code


@given(endpoint=ENDPOINTS)
def test_endpoint_is_its_own_one_form(endpoint: str) -> None:
    assert endpoint == endpoints.parse(endpoint) == endpoints.join(*endpoints.split(endpoint))


@pytest.mark.proves("PEE-012")
@pytest.mark.parametrize(
    "host, is_any",
    [
        ("0.0.0.0", True),
        ("::", True),
        ("[::]", True),
        ("::ffff:0.0.0.0", True),
        ("127.0.0.1", False),
        ("192.168.1.20", False),
        ("laptop.local", False),
        ("", False),
    ],
)
def test_the_wildcard_is_known(host: str, is_any: bool) -> None:
    assert is_any == endpoints.is_any(host)

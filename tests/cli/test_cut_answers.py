"""A node that ends in the middle of its answer is one that does not answer: nobody sees a traceback."""

import socket
import threading
from collections.abc import Iterator

import pytest

from weft.base.endpoints import HTTP as HTTP_PORT
from weft.base.errors import UserError
from weft.cli.asking import order, status_of, try_status

ANSWERS = {
    "a body cut short": b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n{",
    "no status line": b"nonsense\r\n\r\n",
    "nothing": b"",
    "no JSON": b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{]",
}


@pytest.fixture(params=ANSWERS)
def port(request: pytest.FixtureRequest) -> Iterator[int]:
    """The first port of a node that says only this, to three callers."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            for _ in range(3):
                caller, _ = server.accept()
                with caller:
                    caller.recv(65_536)
                    caller.sendall(ANSWERS[request.param])

        served = threading.Thread(target=serve, daemon=True)
        served.start()
        yield server.getsockname()[1] - HTTP_PORT
        served.join(10)


def test_a_cut_answer_is_no_answer(port: int) -> None:
    for ask in (status_of, lambda where: order(where, "list", subtree="")):
        with pytest.raises(UserError) as refused:
            ask(port)
        assert "unavailable" == refused.value.code
    assert try_status(port) is None

"""The pages of a node, asked politely and rudely."""

import asyncio

import pytest

from tests.shell.ports import free_port
from weft.base.errors import UserError
from weft.shell.http import HEAD_BYTES_MAX, Http, Page

HELLO = Page(200, "text/plain", b"hello\n")


def ask(*requests: bytes) -> list[bytes]:
    async def main() -> list[bytes]:
        port = free_port()
        server = Http({"/hello": lambda _: HELLO})
        await server.serve("127.0.0.1", port)
        answers = []
        for request in requests:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(request)
            if writer.can_write_eof():
                writer.write_eof()
            async with asyncio.timeout(10):
                answers.append(await reader.read())
            writer.close()
        await server.close()
        return answers

    return asyncio.run(main())


def test_a_page_is_answered_with_its_length_and_a_tight_policy() -> None:
    (answer,) = ask(b"GET /hello?x=1 HTTP/1.1\r\nHost: localhost\r\n\r\n")
    head, _, body = answer.partition(b"\r\n\r\n")
    assert b"hello\n" == body
    assert head.startswith(b"HTTP/1.1 200")
    assert b"content-security-policy: default-src 'self'" in head.lower()


def test_unknown_pages_and_other_methods_are_refused() -> None:
    answers = ask(
        b"GET /secret HTTP/1.1\r\nHost: x\r\n\r\n", b"POST /hello HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    )
    assert [b"404", b"405"] == [answer.split(b" ", 2)[1] for answer in answers]


def test_garbage_and_oversized_heads_end_the_connection_and_the_next_is_served() -> None:
    answers = ask(
        b"\x00\xff\x00garbage\r\n\r\n",
        b"GET /hello HTTP/1.1\r\nX: " + b"a" * (HEAD_BYTES_MAX * 2) + b"\r\n\r\n",
        b"",
        b"GET /hello HTTP/1.1\r\nHost: x\r\n\r\n",
    )
    assert [b"", b"", b""] == [answer.partition(b"\r\n\r\n")[2] for answer in answers[:3]]
    assert answers[3].endswith(b"hello\n")


def test_a_port_in_use_is_refused_with_the_mend() -> None:
    async def main() -> None:
        port = free_port()
        first = Http({})
        await first.serve("127.0.0.1", port)
        with pytest.raises(UserError) as refused:
            await Http({}).serve("127.0.0.1", port)
        await first.close()
        assert "port-taken" == refused.value.code

    asyncio.run(main())

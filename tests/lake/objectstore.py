"""An object store in this process, as its protocol says and no more: objects, entity tags, conditions, lists in pages.

It shares nothing with the client. It proves that a body is what the signature was made of, that two puts of one key under
`If-None-Match: *` never both succeed, and it can fail on demand: before a request takes effect, or behind it, when the
answer is lost.
"""

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from xml.sax.saxutils import escape

ENVIRONMENT = {"AWS_ACCESS_KEY_ID": "weft", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_REGION": "here"}
PAGE = 3
"""Objects per page of a list: few, so that tests turn pages."""


class Store:
    """What the store holds, and what it does to the next requests."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.asked: list[str] = []
        """Method, key, and `if-none-match` where it was said."""
        self.dies_at: int | None = None
        """The number of the request from which on nothing takes effect and nobody is answered."""
        self.loses = 0
        """So many requests take effect and are not answered."""
        self.says: list[int] = []
        """Statuses of the next answers; their requests have no effect."""
        self.keeps_conditions = True
        self.endpoint = ""
        self._lock = threading.Lock()

    @property
    def environment(self) -> dict[str, str]:
        return ENVIRONMENT | {"AWS_ENDPOINT_URL": self.endpoint}

    def is_dead(self) -> bool:
        return self.dies_at is not None and len(self.asked) >= self.dies_at

    def put(self, key: str, data: bytes, condition: str | None) -> int:
        with self._lock:
            if condition == "*" and key in self.objects and self.keeps_conditions:
                return 412
            self.objects[key] = data
            return 200

    def page(self, query: dict[str, list[str]]) -> bytes:
        """A page of the second version of lists, with keys quoted as was asked for."""
        (prefix,), (delimiter,) = query["prefix"], query["delimiter"]
        assert query["encoding-type"] == ["url"]
        entries: dict[str, bool] = {}
        for key in sorted(self.objects):
            if key.startswith(prefix):
                head, found, _ = key[len(prefix) :].partition(delimiter)
                entries[prefix + head + found] = bool(found)
        after = query.get("continuation-token", [""])[0].removeprefix("<after> ")
        rest = [name for name in sorted(entries) if name > after]
        count = min(PAGE, int(query["max-keys"][0]))
        said = (
            "".join(map(self._entry, *zip(*((name, entries[name]) for name in rest[:count]), strict=True)))
            if rest
            else ""
        )
        more = (
            f"<NextContinuationToken>{escape('<after> ' + rest[count - 1])}</NextContinuationToken>"
            if rest[count:]
            else ""
        )
        return f'<?xml version="1.0"?>\n<ListBucketResult>{more}{said}</ListBucketResult>'.encode()

    def _entry(self, key: str, is_prefix: bool) -> str:
        name = quote(key, safe="/")
        if is_prefix:
            return f"<CommonPrefixes><Prefix>{name}</Prefix></CommonPrefixes>"
        when, size = "2026-11-28T12:30:22.000Z", len(self.objects[key])
        return f"<Contents><Key>{name}</Key><LastModified>{when}</LastModified><Size>{size}</Size></Contents>"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # else a body waits for the acknowledgement of its headers
    store: Store

    def _serve(self) -> None:
        path = urlsplit(self.path)
        bucket, _, key = unquote(path.path)[1:].partition("/")
        data = self.rfile.read(int(self.headers.get("content-length", 0)))
        condition = self.headers.get("if-none-match")
        store = self.store
        if store.is_dead():
            self.close_connection = True
            return
        store.asked.append(f"{self.command} {key}" + (" if-none-match" if condition else ""))
        if store.says:
            self._answer(store.says.pop(0), b"<Error><Code>SlowDown</Code><Message>not &lt;now&gt;</Message></Error>")
            return
        status, body = self._done(bucket, key, path.query, data, condition)
        if store.loses:
            store.loses -= 1
            self.close_connection = True
            return
        self._answer(status, body, self.store.objects.get(key) if self.command == "HEAD" else None)

    do_GET = do_PUT = do_HEAD = do_DELETE = _serve  # noqa: N815  # names of http.server

    def _done(self, bucket: str, key: str, query: str, data: bytes, condition: str | None) -> tuple[int, bytes]:
        assert hashlib.sha256(data).hexdigest() == self.headers["x-amz-content-sha256"]
        assert self.headers["authorization"].startswith("AWS4-HMAC-SHA256 Credential=weft/")
        if bucket != "fleet":
            return 404, b"<Error><Code>NoSuchBucket</Code><Message>no such bucket</Message></Error>"
        if not key:
            return 200, self.store.page(parse_qs(query, strict_parsing=True, keep_blank_values=True))
        if self.command == "PUT":
            return self.store.put(key, data, condition), b""
        if self.command == "DELETE":
            self.store.objects.pop(key, None)
            return 204, b""
        if key not in self.store.objects:
            return 404, b"<Error><Code>NoSuchKey</Code><Message>no such key</Message></Error>"
        return 200, self.store.objects[key]

    def _answer(self, status: int, body: bytes, shown: bytes | None = None) -> None:
        self.send_response(status)
        self.send_header("last-modified", formatdate(usegmt=True))
        self.send_header("content-length", str(len(body if shown is None else shown)))
        self.end_headers()
        if self.command != "HEAD" and status != 204:
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # as its base says
        """Nothing is printed."""


@contextmanager
def store() -> Iterator[Store]:
    """A store with the bucket `fleet` on a free port of the loopback."""
    held = Store()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"store": held}))
    server.daemon_threads = True
    held.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield held
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)

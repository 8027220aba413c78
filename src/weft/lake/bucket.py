"""The requests that a lake makes to an S3-compatible object store, signed with Amazon's Signature Version 4 (PIP-105).

Six requests: get, head, put, conditional put, delete, list. The access keys come from the environment, from the
variables that all S3 tools read. A request without an answer, or with an answer from `LATER`, is tried `TRIES` times.
What the store refuses becomes an OSError, as if it were a disk.
"""

import errno
import re
import ssl
import time
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from hashlib import sha256
from hmac import new as hmac
from html import unescape
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from threading import Lock
from typing import Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit

from weft.base.errors import UserError

TIMEOUT_S: Final = 3.0  # without a byte; a node that ends waits 10 s for its recorder
TRIES: Final = 3
PAUSE_S: Final = 0.2  # before the second try; doubled before the third
BODY_MAX: Final = 256 << 20  # bytes of an answer: a segment has at most 32 MiB before it is packed
LIST_PAGES_MAX: Final = 10_000  # of 1,000 names each
TEXT_MAX: Final = 300  # characters of a store's error
LATER: Final = frozenset({409, 429, 500, 502, 503, 504})
"""Statuses after which the same request may succeed."""
FAULTS: Final[dict[int | str, int]] = {
    401: errno.EACCES,
    403: errno.EACCES,
    404: errno.ENOENT,
    412: errno.EEXIST,
    507: errno.ENOSPC,
    "NoSuchBucket": errno.ENXIO,
    "QuotaExceeded": errno.ENOSPC,
    "XMinioAdminBucketQuotaExceeded": errno.ENOSPC,
    "XMinioStorageFull": errno.ENOSPC,
}
"""The errno of an answer, looked up by the store's own code, then by the status. Any other answer is EIO."""

_CODE: Final = re.compile(rb"<Code>([^<]*)</Code>")
_MESSAGE: Final = re.compile(rb"<Message>([^<]*)</Message>")
_CONTENTS: Final = re.compile(r"<Contents>(.*?)</Contents>", re.DOTALL)
_BELOW: Final = re.compile(r"<CommonPrefixes>\s*<Prefix>([^<]*)</Prefix>")
_NEXT: Final = re.compile(r"<NextContinuationToken>([^<]*)</NextContinuationToken>")
_FIELD: Final = {name: re.compile(rf"<{name}>([^<]*)</{name}>") for name in ("Key", "Size", "LastModified")}

assert TIMEOUT_S * TRIES < 10, "else a node cannot end while its store is away"


class Access(NamedTuple):
    """Where the store is, and the keys that sign requests to it."""

    endpoint: str
    """`https://host:port`, without a path."""
    region: str
    key_id: str
    secret: str
    token: str = ""


def access_of(environ: Mapping[str, str]) -> Access:
    """The access that the environment variables describe. UserError `no-keys`, `bad-endpoint`."""
    key_id, secret = environ.get("AWS_ACCESS_KEY_ID", ""), environ.get("AWS_SECRET_ACCESS_KEY", "")
    if not key_id or not secret:
        text = "a lake in an object store needs its keys in the environment"
        raise UserError("no-keys", text, "AWS_ACCESS_KEY_ID=… AWS_SECRET_ACCESS_KEY=…")
    region = environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION") or "us-east-1"
    named = environ.get("AWS_ENDPOINT_URL_S3") or environ.get("AWS_ENDPOINT_URL")
    endpoint = named or f"https://s3.{region}.amazonaws.com"
    parts = urlsplit(endpoint)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
        raise UserError("bad-endpoint", f"AWS_ENDPOINT_URL is {endpoint!r}", "AWS_ENDPOINT_URL=https://host:port")
    return Access(endpoint.rstrip("/"), region, key_id, secret, environ.get("AWS_SESSION_TOKEN", ""))


class Request(NamedTuple):
    """The parts of a request that its signature covers."""

    method: str
    path: str
    """Quoted, with a leading slash."""
    query: str
    """Quoted, sorted by name."""
    headers: dict[str, str]
    """With lowercase names; all are signed."""
    digest: str
    """SHA-256 of the body, hex."""


def signed(request: Request, access: Access, stamp: str) -> str:
    """The header `Authorization` of a request made at `stamp` (`20130524T000000Z`)."""
    scope = f"{stamp[:8]}/{access.region}/s3/aws4_request"
    names = sorted(request.headers)
    lines = "".join(f"{name}:{request.headers[name].strip()}\n" for name in names)
    canonical = f"{request.method}\n{request.path}\n{request.query}\n{lines}\n{';'.join(names)}\n{request.digest}"
    to_sign = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{access.secret}".encode()
    for part in scope.split("/"):
        key = hmac(key, part.encode(), sha256).digest()
    signature = hmac(key, to_sign.encode(), sha256).hexdigest()
    who = f"Credential={access.key_id}/{scope}"
    return f"AWS4-HMAC-SHA256 {who},SignedHeaders={';'.join(names)},Signature={signature}"


class Answer(NamedTuple):
    """The answer of the store to one request."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def fault(self, what: str) -> OSError:
        """The answer as an OSError; `what` was asked."""
        code = _text(_CODE, self.body)
        number = FAULTS.get(code, FAULTS.get(self.status, errno.EIO))
        return OSError(number, f"{what}: {self.status} {code} {_text(_MESSAGE, self.body)}".rstrip())


class Listed(NamedTuple):
    """One entry of a list: an object, or a prefix that several objects share."""

    name: str
    """Without the prefix that was asked for, and without a slash."""
    is_prefix: bool
    size: int = 0
    at_ns: int = 0
    """When it was written, wall-clock nanoseconds."""


class Bucket:
    """One bucket over one connection, which threads use in turn. Each call raises OSError if the store refuses."""

    def __init__(self, name: str, access: Access) -> None:
        self.name, self.access = name, access
        parts = urlsplit(access.endpoint)
        self._host = parts.netloc
        if parts.scheme == "https":
            tls = ssl.create_default_context()
            self._line: HTTPConnection = HTTPSConnection(self._host, timeout=TIMEOUT_S, context=tls)
        else:
            self._line = HTTPConnection(self._host, timeout=TIMEOUT_S)
        self._lock = Lock()

    def get(self, key: str) -> bytes:
        """The bytes of an object; FileNotFoundError if it does not exist."""
        return self._send_or_raise("GET", key).body

    def head(self, key: str) -> Listed | None:
        """Size and time of an object; None if it does not exist."""
        answer = self._send("HEAD", key)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise answer.fault(self._what("HEAD", key))
        at = parsedate_to_datetime(answer.headers["last-modified"])
        size = int(answer.headers.get("content-length", 0))
        return Listed(key, is_prefix=False, size=size, at_ns=round(at.timestamp()) * 1_000_000_000)

    def put(self, key: str, data: bytes) -> None:
        """Write an object; replaces one that exists."""
        self._send_or_raise("PUT", key, data)

    def put_new(self, key: str, data: bytes) -> None:
        """Write an object that does not exist yet; FileExistsError if one with other bytes does.

        If one with equal bytes exists, an earlier try has written it and its answer was lost: that is success.
        """
        answer = self.put_once(key, data)
        if answer.status == 412 and self.get(key) == data:
            return
        if answer.status != 200:
            raise answer.fault(self._what("PUT", key))

    def put_once(self, key: str, data: bytes) -> Answer:
        """The answer to a conditional put: 200, or 412 if the object exists."""
        return self._send("PUT", key, data, headers={"if-none-match": "*"})

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""
        answer = self._send("DELETE", key)
        if answer.status not in (200, 204, 404):
            raise answer.fault(self._what("DELETE", key))

    def below(self, prefix: str, most: int = 1_000) -> Iterator[Listed]:
        """What lies directly below a prefix: objects with no further slash in their keys, and the prefixes one level down.

        `most`: how many entries one request asks for.
        """
        token = ""
        for _ in range(LIST_PAGES_MAX):
            query = {
                "delimiter": "/",
                "encoding-type": "url",
                "list-type": "2",
                "max-keys": str(most),
                "prefix": prefix,
            }
            answer = self._send_or_raise("GET", "", query=query | ({"continuation-token": token} if token else {}))
            page = answer.body.decode("utf-8", "replace")
            for found in _BELOW.findall(page):
                yield Listed(unquote(found).removeprefix(prefix).rstrip("/"), is_prefix=True)
            yield from (_listed(entry, prefix) for entry in _CONTENTS.findall(page))
            more = _NEXT.search(page)
            if more is None:
                return
            token = unescape(more[1])

    def _send_or_raise(
        self, method: str, key: str, data: bytes = b"", query: Mapping[str, str] | None = None
    ) -> Answer:
        answer = self._send(method, key, data, query)
        if answer.status != 200:
            raise answer.fault(self._what(method, key))
        return answer

    def _send(
        self,
        method: str,
        key: str,
        data: bytes = b"",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to a request, after up to `TRIES` tries. OSError if none was answered."""
        path = quote(f"/{self.name}/{key}" if key else f"/{self.name}", safe="/-_.~")
        query_text = "&".join(
            f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in sorted((query or {}).items())
        )
        for tries_left in reversed(range(TRIES)):
            try:
                answer = self._send_once(
                    Request(method, path, query_text, dict(headers or {}), sha256(data).hexdigest()), data
                )
            except (HTTPException, OSError) as error:
                if not tries_left:
                    raise OSError(errno.EIO, f"{self._what(method, key)}: {error}") from error
            else:
                if answer.status not in LATER or not tries_left:
                    return answer
            time.sleep(PAUSE_S * 2 ** (TRIES - 1 - tries_left))
        raise AssertionError("the last try returns or raises")

    def _send_once(self, request: Request, data: bytes) -> Answer:
        stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        signing = request.headers | {"host": self._host, "x-amz-content-sha256": request.digest, "x-amz-date": stamp}
        if self.access.token:
            signing["x-amz-security-token"] = self.access.token
        sending = signing | {"authorization": signed(request._replace(headers=signing), self.access, stamp)}
        target = f"{request.path}?{request.query}" if request.query else request.path
        with self._lock:
            try:
                self._line.request(request.method, target, data or None, sending)
                with self._line.getresponse() as answer:
                    return Answer(answer.status, _lower(answer), _body(answer))
            except BaseException:
                self._line.close()
                raise

    def _what(self, method: str, key: str) -> str:
        return f"{method} s3://{self.name}/{key} at {self.access.endpoint}"


def _body(answer: HTTPResponse) -> bytes:
    body = answer.read(BODY_MAX + 1)
    if len(body) > BODY_MAX:
        raise OSError(errno.EFBIG, f"the object store answered with more than {BODY_MAX} bytes")
    return body


def _lower(answer: HTTPResponse) -> dict[str, str]:
    return {name.lower(): value for name, value in answer.getheaders()}


def _text(pattern: re.Pattern[bytes], body: bytes) -> str:
    found = pattern.search(body)
    text = unescape(found[1].decode("utf-8", "replace")) if found else ""
    return "".join(sign for sign in text if sign.isprintable())[:TEXT_MAX]


def _listed(entry: str, prefix: str) -> Listed:
    """One object of a list."""
    found = {name: pattern.search(entry) for name, pattern in _FIELD.items()}
    texts = {name: match[1] for name, match in found.items() if match}
    if texts.keys() != found.keys():
        raise OSError(
            errno.EIO, f"the object store lists an object without {', '.join(sorted(found.keys() - texts.keys()))}"
        )
    at = datetime.fromisoformat(texts["LastModified"])
    name = unquote(texts["Key"]).removeprefix(prefix)
    return Listed(name, is_prefix=False, size=int(texts["Size"]), at_ns=round(at.timestamp()) * 1_000_000_000)

"""The requests that a lake needs of an S3-compatible object store, signed with version 4 of Amazon's signatures (PIP-105).

Six requests: get, head, put, conditional put, delete, list. Keys are those of the environment, under the names that all
tools of this protocol read. A request that got no answer, or one that says *later*, is repeated a few times. What the
store refuses becomes an OSError, as of a disk.
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

TIMEOUT_S: Final = 3.0  # seconds without a byte; a node that ends waits 10 s for its recorder
TRIES: Final = 3
PAUSE_S: Final = 0.2  # seconds before the second try; doubled before the third
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
"""The error of a file system that an answer amounts to, by status or by the store's own code; else EIO."""

_CODE: Final = re.compile(rb"<Code>([^<]*)</Code>")
_MESSAGE: Final = re.compile(rb"<Message>([^<]*)</Message>")
_CONTENTS: Final = re.compile(r"<Contents>(.*?)</Contents>", re.DOTALL)
_BELOW: Final = re.compile(r"<CommonPrefixes>\s*<Prefix>([^<]*)</Prefix>")
_NEXT: Final = re.compile(r"<NextContinuationToken>([^<]*)</NextContinuationToken>")
_FIELD: Final = {name: re.compile(rf"<{name}>([^<]*)</{name}>") for name in ("Key", "Size", "LastModified")}

assert TIMEOUT_S * TRIES < 10, "else a node cannot end while its store is away"


class Access(NamedTuple):
    """Where the store is, and who asks."""

    endpoint: str
    region: str
    key_id: str
    secret: str
    token: str = ""


def access_of(environ: Mapping[str, str]) -> Access:
    """What the environment says. UserError `no-keys`, `bad-endpoint`."""
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
    """What is signed."""

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
    wanted = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{access.secret}".encode()
    for part in scope.split("/"):
        key = hmac(key, part.encode(), sha256).digest()
    signature = hmac(key, wanted.encode(), sha256).hexdigest()
    who = f"Credential={access.key_id}/{scope}"
    return f"AWS4-HMAC-SHA256 {who},SignedHeaders={';'.join(names)},Signature={signature}"


class Answer(NamedTuple):
    """What the store has said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def fault(self, what: str) -> OSError:
        """The answer as an error of a disk."""
        code = _text(_CODE, self.body)
        number = FAULTS.get(code, FAULTS.get(self.status, errno.EIO))
        return OSError(number, f"{what}: {self.status} {code} {_text(_MESSAGE, self.body)}".rstrip())


class Listed(NamedTuple):
    """An object, or what begins with a prefix."""

    name: str
    """Without the prefix that was asked for, and without a slash."""
    is_prefix: bool
    size: int = 0
    at_ns: int = 0
    """When it was written, wall-clock nanoseconds."""


class Bucket:
    """One bucket over one connection. Threads take turns. Each call raises OSError if the store refuses."""

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
        return self._done("GET", key).body

    def head(self, key: str) -> Listed | None:
        """Size and time of an object; None if it does not exist."""
        answer = self._asked("HEAD", key)
        if answer.status == 404:
            return None
        if answer.status != 200:
            raise answer.fault(self._what("HEAD", key))
        at = parsedate_to_datetime(answer.headers["last-modified"])
        size = int(answer.headers.get("content-length", 0))
        return Listed(key, is_prefix=False, size=size, at_ns=round(at.timestamp()) * 1_000_000_000)

    def put(self, key: str, data: bytes) -> None:
        """Write an object, in place of an earlier one."""
        self._done("PUT", key, data)

    def put_new(self, key: str, data: bytes) -> None:
        """Write an object that does not exist yet; FileExistsError if one with other bytes does.

        Equal bytes are ours: the answer to an earlier try was lost.
        """
        answer = self.put_once(key, data)
        if answer.status == 412 and self.get(key) == data:
            return
        if answer.status != 200:
            raise answer.fault(self._what("PUT", key))

    def put_once(self, key: str, data: bytes) -> Answer:
        """The answer to a conditional put: 200, or 412 if the object exists."""
        return self._asked("PUT", key, data, headers={"if-none-match": "*"})

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""
        answer = self._asked("DELETE", key)
        if answer.status not in (200, 204, 404):
            raise answer.fault(self._what("DELETE", key))

    def below(self, prefix: str, most: int = 1_000) -> Iterator[Listed]:
        """Objects whose keys begin with a prefix and have no slash behind it, and the prefixes one level below."""
        token = ""
        for _ in range(LIST_PAGES_MAX):
            query = {
                "delimiter": "/",
                "encoding-type": "url",
                "list-type": "2",
                "max-keys": str(most),
                "prefix": prefix,
            }
            answer = self._done("GET", "", query=query | ({"continuation-token": token} if token else {}))
            page = answer.body.decode("utf-8", "replace")
            for below in _BELOW.findall(page):
                yield Listed(unquote(below).removeprefix(prefix).rstrip("/"), is_prefix=True)
            yield from (_listed(entry, prefix) for entry in _CONTENTS.findall(page))
            found = _NEXT.search(page)
            if found is None:
                return
            token = unescape(found[1])

    def _done(self, method: str, key: str, data: bytes = b"", query: Mapping[str, str] | None = None) -> Answer:
        answer = self._asked(method, key, data, query)
        if answer.status != 200:
            raise answer.fault(self._what(method, key))
        return answer

    def _asked(
        self,
        method: str,
        key: str,
        data: bytes = b"",
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to a request, repeated while that may help."""
        path = quote(f"/{self.name}/{key}" if key else f"/{self.name}", safe="/-_.~")
        told = "&".join(
            f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in sorted((query or {}).items())
        )
        for left in reversed(range(TRIES)):
            try:
                answer = self._once(Request(method, path, told, dict(headers or {}), sha256(data).hexdigest()), data)
            except (HTTPException, OSError) as error:
                if not left:
                    raise OSError(errno.EIO, f"{self._what(method, key)}: {error}") from error
            else:
                if answer.status not in LATER or not left:
                    return answer
            time.sleep(PAUSE_S * 2 ** (TRIES - 1 - left))
        raise AssertionError("the last try returns or raises")

    def _once(self, request: Request, data: bytes) -> Answer:
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
        raise OSError(errno.EFBIG, f"an answer of over {BODY_MAX} bytes")
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
        raise OSError(errno.EIO, f"a list without {', '.join(found.keys() - texts.keys())}")
    at = datetime.fromisoformat(texts["LastModified"])
    name = unquote(texts["Key"]).removeprefix(prefix)
    return Listed(name, is_prefix=False, size=int(texts["Size"]), at_ns=round(at.timestamp()) * 1_000_000_000)

"""Decides who may read and who may write through an HTTP server (SEC-046).

Programs of this machine may read. A browser on another machine needs the token, or the *view key*, which is derived from the
token and does not allow writing: public screens get it, as `http://host:port/?key=VIEW`. A cookie then holds it, so that no
address bar shows it. Writing from another machine needs the token itself, in a header that no page of another site can send.
On this machine writing needs it only if `always_token` is set.

Pages of other sites have no access. The Host must be a name of this server, because a foreign name may resolve to this
machine. An Origin must equal that Host. A request that writes must be JSON, which no HTML form can send.
"""

import hashlib
import hmac
import socket
from typing import Final
from urllib.parse import parse_qs

from weft.base.endpoints import address_of, is_loopback
from weft.shell.http.logins import Logins
from weft.shell.http.messages import HTML, JSON, TEXT, Request, Response, refusal
from weft.shell.kernel import is_same_user

COOKIE: Final = "weft_board"
KEY: Final = "key"
VIEW_CHARACTERS: Final = 24
OUR_NAMES: Final = frozenset({"localhost", "127.0.0.1", "::1"})
STRANGER: Final = Response(421, TEXT, b"this server is called by its address\n")
ASKS_KEY: Final = Response(
    401,
    HTML,
    b"<!doctype html><title>Weft</title><form>This page asks for its key: <input name=key> <button>Go</button></form>",
    "default-src 'none'; form-action 'self'; frame-ancestors 'none'",
)


class Gate:
    """The access rules of one server."""

    def __init__(
        self,
        token: str = "",
        *,
        is_loopback: bool = False,
        is_open: bool = False,
        always_token: bool = False,
        only_user: bool = False,
    ) -> None:
        """`is_loopback`: it listens on this machine only. `is_open`: requests from other machines may read.

        `token` empty: no other machine may write. `always_token`: programs of this machine need the token, too, to write.
        `only_user`: programs of this machine may write without it only if the kernel says that they are of this user
        (SEC-056).
        """
        self.view = hashlib.sha256(b"weft board, view: " + token.encode()).hexdigest()[:VIEW_CHARACTERS]
        self._token, self._is_loopback, self._is_open, self._always = token, is_loopback, is_open, always_token
        self._only_user = only_user
        self.logins: Logins | None = None
        """People who have logged in; None: this server has no logins."""
        self._names = OUR_NAMES if is_loopback else OUR_NAMES | _names_of_this_machine()

    def refuses(self, request: Request, *, writes: bool) -> Response | None:
        """The refusal of a request, before its body is read; None: it is allowed."""
        if not self._is_ours(request, writes=writes):
            return STRANGER
        if not writes:
            return None if self.may_read(request) else ASKS_KEY
        host = request.headers.get("host", "")
        if request.headers.get("origin", f"http://{host}") != f"http://{host}":
            return refusal(403, "not-allowed", "another site's page may enter nothing")
        if not self.may_write(request):
            return self._asks_token(request)
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            return refusal(415, "content-type", "what is said here is JSON", f"Content-Type: {JSON}")
        return None

    def opens(self, query: str) -> str:
        """The cookie for a request with a key in its address; empty if the key is wrong."""
        key = parse_qs(query).get(KEY, [""])[0] if self._token else ""
        if not key or not (_is_same(key, self.view) or _is_same(key, self._token)):
            return ""
        return f"{COOKIE}={self.view}; Path=/; HttpOnly; SameSite=Strict"

    def is_ours(self, host: str) -> bool:
        """Whether a Host header names this server: addresses do, foreign names that resolve to this machine do not."""
        name = (host if host.endswith("]") else host.rsplit(":", 1)[0]).strip("[]").lower()
        return name in self._names or (not self._is_loopback and address_of(name) is not None)

    def may_read(self, request: Request) -> bool:
        """Whether a request may read: from this machine, if reading is open, or with the token or the view key."""
        if self._is_open or is_loopback(request.peer) or self._says_token(request):
            return True
        from http.cookies import CookieError, SimpleCookie  # only browsers on other machines have one

        try:
            cookie = SimpleCookie(request.headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        return bool(self._token) and cookie is not None and _is_same(cookie.value, self.view)

    def may_write(self, request: Request) -> bool:
        """Whether a request may write: with `Authorization: Bearer TOKEN`, or from this machine if that suffices."""
        return self._says_token(request) or (not self._always and self._is_trusted(request))

    def _is_trusted(self, request: Request) -> bool:
        if not is_loopback(request.peer):
            return False
        (there, here), host = request.ports, request.host
        return not self._only_user or is_same_user((request.peer, there), (host, here))

    def _is_ours(self, request: Request, *, writes: bool) -> bool:
        """Whether the Host is allowed. Other machines may read an open server under any name, as monitoring does."""
        if self._is_open and not writes and not is_loopback(request.peer):
            return True
        return self.is_ours(request.headers.get("host", ""))

    def login_of(self, request: Request) -> str | None:
        """The name of the person whose login came with a request; None: it came with no valid one."""
        return None if self.logins is None else self.logins.who(self.bearer(request))

    def _says_token(self, request: Request) -> bool:
        if self.login_of(request) is not None:
            return True
        return bool(self._token) and _is_same(self.bearer(request), self._token)

    @staticmethod
    def bearer(request: Request) -> str:
        """The token in a request; empty: none."""
        kind, _, token = request.headers.get("authorization", "").partition(" ")
        return token.strip() if kind.lower() == "bearer" else ""

    def _asks_token(self, request: Request) -> Response:
        if self._token:
            return refusal(401, "token", "an entry needs this server's token", "Authorization: Bearer TOKEN")
        mend = "weft console login, on the node's machine" if self.logins is not None else ""
        return refusal(403, "not-allowed", f"orders come from programs of this machine, not from {request.peer}", mend)


def _is_same(given: str, right: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "surrogateescape"), right.encode())


def _names_of_this_machine() -> frozenset[str]:
    name = socket.gethostname().lower()
    return frozenset({name, f"{name.partition('.')[0]}.local"})

"""Who may see a board, and who may enter there (SEC-046).

On this machine everybody sees it. From elsewhere a browser says the token, or the *view key*, which is made of the token
and lets nobody enter: that is what a hall's screens are given, as `http://host:port/?key=VIEW`. It is kept in a cookie, so
that the key stays in no address bar. Entering takes the token itself, in a header that no other site's page can send.
"""

import hashlib
import hmac
import ipaddress
import socket
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import parse_qs

COOKIE: Final = "weft_board"
KEY: Final = "key"
VIEW_CHARACTERS: Final = 24
OUR_NAMES: Final = ("localhost", "127.0.0.1", "::1")


class Gate:
    """What one board lets in."""

    def __init__(self, token: str, *, is_loopback: bool) -> None:
        self.view = hashlib.sha256(b"weft board, view: " + token.encode()).hexdigest()[:VIEW_CHARACTERS]
        self._token, self._is_loopback = token, is_loopback
        self._names = set(OUR_NAMES) if is_loopback else {*OUR_NAMES, *_names_of_this_machine()}

    def is_ours(self, host: str) -> bool:
        """Whether a Host names us: a name that somebody made to point here does not, an address always does."""
        name = (host if host.endswith("]") else host.rsplit(":", 1)[0]).strip("[]").lower()
        return name in self._names or (not self._is_loopback and _address_of(name) is not None)

    def may_see(self, peer: str, headers: Mapping[str, str]) -> bool:
        """Whether a request may be answered with the board at all."""
        address = _address_of(peer)
        if address is None or address.is_loopback:
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            cookie = None
        return self.may_enter(headers) or (cookie is not None and _is_same(cookie.value, self.view))

    def opens(self, query: str) -> str:
        """The cookie for who says a key in the address; empty: it is none of ours."""
        said = parse_qs(query).get(KEY, [""])[0]
        if not (_is_same(said, self.view) or _is_same(said, self._token)):
            return ""
        return f"{COOKIE}={self.view}; Path=/; HttpOnly; SameSite=Strict"

    def may_enter(self, headers: Mapping[str, str]) -> bool:
        """Whether it says the token: `Authorization: Bearer TOKEN`."""
        kind, _, said = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and _is_same(said.strip(), self._token)


def _is_same(said: str, right: str) -> bool:
    return hmac.compare_digest(said.encode("utf-8", "surrogateescape"), right.encode())


def _address_of(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def _names_of_this_machine() -> list[str]:
    name = socket.gethostname().lower()
    return [name, f"{name.partition('.')[0]}.local"]

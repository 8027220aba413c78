"""The logins of people who may write for a limited time. Tokens are only in memory, so a restart ends them (CON-004)."""

import secrets
from collections.abc import Callable
from typing import NamedTuple

from weft.shell.http.limits import LOGIN_S_MAX, LOGINS_MAX


class Login(NamedTuple):
    """The name of a person, and when the login ends, by the monotonic clock."""

    who: str
    ends_at: float


class Logins:
    """The valid tokens; beyond LOGINS_MAX the one that ends first is dropped."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now`: a clock in seconds that never goes back."""
        self._now = now
        self._known: dict[str, Login] = {}

    def add(self, who: str, for_s: float) -> str:
        """A new token for somebody, valid for `for_s` seconds, LOGIN_S_MAX at most."""
        self._forget()
        while len(self._known) >= LOGINS_MAX:
            del self._known[min(self._known, key=lambda token: self._known[token].ends_at)]
        token = secrets.token_urlsafe(24)
        self._known[token] = Login(who, self._now() + min(for_s, LOGIN_S_MAX))
        return token

    def who(self, token: str) -> str | None:
        """The owner of a token; None: it is unknown or has expired."""
        self._forget()
        given = token.encode("utf-8", "surrogateescape")
        found = [login.who for known, login in self._known.items() if secrets.compare_digest(known.encode(), given)]
        return found[0] if found else None

    def _forget(self) -> None:
        now = self._now()
        self._known = {token: login for token, login in self._known.items() if login.ends_at > now}

"""People who may write for a while: a token each, in memory only, so that a start of the node ends all of them (CON-004)."""

import secrets
from collections.abc import Callable
from typing import NamedTuple

from weft.shell.http.limits import LOGIN_S_MAX, LOGINS_MAX


class Login(NamedTuple):
    """Who, and until when by the monotonic clock."""

    who: str
    ends_at: float


class Logins:
    """The tokens that are good now; more than LOGINS_MAX push out the one that ends first."""

    def __init__(self, now: Callable[[], float]) -> None:
        """`now`: seconds, never going back."""
        self._now = now
        self._known: dict[str, Login] = {}

    def add(self, who: str, for_s: float) -> str:
        """A new token of somebody, good for so long, LOGIN_S_MAX at most."""
        self._forget()
        while len(self._known) >= LOGINS_MAX:
            del self._known[min(self._known, key=lambda token: self._known[token].ends_at)]
        token = secrets.token_urlsafe(24)
        self._known[token] = Login(who, self._now() + min(for_s, LOGIN_S_MAX))
        return token

    def who(self, token: str) -> str | None:
        """Whose token it is; None: nobody's, or not any more."""
        self._forget()
        said = token.encode("utf-8", "surrogateescape")
        found = [login.who for known, login in self._known.items() if secrets.compare_digest(known.encode(), said)]
        return found[0] if found else None

    def _forget(self) -> None:
        now = self._now()
        self._known = {token: login for token, login in self._known.items() if login.ends_at > now}

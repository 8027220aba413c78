"""Requests to servers outside, each in a thread of its own: they may hang, and nothing else waits (MET-004, MET-006)."""

import asyncio
import contextlib
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final

ANSWER_BYTES_MAX: Final = 64 << 10  # read of a yes
SAID_BYTES_MAX: Final = 200  # read of a no, for people


class Apart:
    """Does work for receivers by name, for each one thing at a time, and hands the outcome to a core on the loop."""

    def __init__(self, core: str, order: Callable[[str, Any], None]) -> None:
        self._core, self._order = core, order
        self._busy: dict[str, threading.Thread] = {}

    def begin(self, receiver: str, act: Callable[[], Any], failed: Callable[[str], Any]) -> None:
        """Act in a thread; if the last act for this receiver hangs, hand over `failed(why)` instead."""
        loop, before = asyncio.get_running_loop(), self._busy.get(receiver)
        if before is not None and before.is_alive():
            loop.call_soon(self._order, self._core, failed("the try before this one has not ended"))
            return
        thread = threading.Thread(target=self._act, args=(act, loop), name=f"{self._core}-{receiver}", daemon=True)
        self._busy[receiver] = thread
        thread.start()

    def _act(self, act: Callable[[], Any], loop: asyncio.AbstractEventLoop) -> None:
        outcome = act()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits for the outcome
            loop.call_soon_threadsafe(self._order, self._core, outcome)


class _Straight(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as a failure: urllib would follow it with a GET, and nobody would have got the body."""

    def redirect_request(self, *_: Any) -> None:  # tidy: urllib calls it
        return None


_OPENER: Final = urllib.request.build_opener(_Straight)


class Denied(OSError):
    """The receiver has answered with another status than success."""

    def __init__(self, code: int, reason: str, said: str) -> None:
        super().__init__(f"{code} {reason}: {said}" if said else f"{code} {reason}")
        self.code, self.reason = code, reason


def post(url: str, data: bytes, headers: Mapping[str, str], patience_s: float) -> bytes:
    """POST, and return the beginning of the answer. Denied for every status but success; `patience_s` without a byte fails."""
    request = urllib.request.Request(url, data, {"user-agent": "weft", **headers})  # noqa: S310  # http(s) only, checked with the file
    try:
        with _OPENER.open(request, timeout=patience_s) as answer:
            return bytes(answer.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        with error:
            said = error.read(SAID_BYTES_MAX).decode("utf-8", "replace").strip()
        raise Denied(error.code, str(error.reason), said) from None

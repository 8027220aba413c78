"""Sends requests to servers outside the fabric, each in a thread: one that hangs holds up nothing else (MET-004, MET-006)."""

import asyncio
import contextlib
import threading
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any, Final

ANSWER_BYTES_MAX: Final = 64 << 10  # read of the body of a successful answer
ERROR_BYTES_MAX: Final = 200  # read of the body of an error, to show it to people


class Apart:
    """Runs requests in threads, one at a time for each receiver, and gives each outcome to a core as an order."""

    def __init__(self, core: str, order: Callable[[str, Any], None]) -> None:
        self._core, self._order = core, order
        self._busy: dict[str, threading.Thread] = {}

    def begin(self, receiver: str, act: Callable[[], Any], failed: Callable[[str], Any]) -> None:
        """Run `act` in a thread, and give the core what it returns.

        If the previous `act` for this receiver has not ended, the core gets `failed(why)` instead.
        """
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


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Treats a redirect as a failure: urllib would follow it with a GET, without the body."""

    def redirect_request(self, *_: Any) -> None:  # tidy: urllib calls it
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirects)


class Denied(OSError):
    """The receiver has answered with another status than success."""

    def __init__(self, code: int, reason: str, body: str) -> None:
        super().__init__(f"{code} {reason}: {body}" if body else f"{code} {reason}")
        self.code, self.reason = code, reason


def post(url: str, data: bytes, headers: Mapping[str, str], patience_s: float) -> bytes:
    """POST `data`; returns the beginning of the answer.

    Denied for every status but success; TimeoutError if no byte comes for `patience_s` seconds.
    """
    request = urllib.request.Request(url, data, {"user-agent": "weft", **headers})  # noqa: S310  # http(s) only, checked with the file
    try:
        with _OPENER.open(request, timeout=patience_s) as answer:
            return bytes(answer.read(ANSWER_BYTES_MAX))
    except urllib.error.HTTPError as error:
        with error:
            body = error.read(ERROR_BYTES_MAX).decode("utf-8", "replace").strip()
        raise Denied(error.code, str(error.reason), body) from None

"""A real browser without a window, driven through its pipe (`--remote-debugging-pipe`: JSON, a zero byte after each)."""

import base64
import contextlib
import json
import os
import select
import subprocess
import time
from pathlib import Path
from typing import Any, Self

from tests.interop.programs import needed
from tests.patience import PATIENCE_S

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",  # no page reaches another machine
    "--remote-debugging-pipe",
)


class Chromium:
    """One browser; `with`. `open` makes a page of it."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._number = 0
        self._held = b""
        self.complaints: list[str] = []
        """What pages wrote to their consoles as errors, and what their policies refused."""

    def __enter__(self) -> Self:
        ours_in, self._write = os.pipe()
        self._read, ours_out = os.pipe()
        shell = ["bash", "-c", 'exec "$@" 3<&"$IN" 4>&"$OUT"', "chromium", needed("chromium"), *FLAGS]
        environment = os.environ | {"IN": str(ours_in), "OUT": str(ours_out), "HOME": str(self._place)}
        self._process = subprocess.Popen(
            [*shell, f"--user-data-dir={self._place / 'profile'}"],
            pass_fds=(ours_in, ours_out),
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(ours_in)
        os.close(ours_out)
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self.say("Browser.close")
        for end in (self._write, self._read):
            os.close(end)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def open(self, url: str, width: int = 1280, height: int = 800) -> "Page":
        """A page of that size at that address."""
        target = self.say("Target.createTarget", url="about:blank")["targetId"]
        session = self.say("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        for domain in ("Page", "Runtime", "Log"):
            page.say(f"{domain}.enable")
        page.say("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        page.say("Page.navigate", url=url)
        return page

    def say(self, method: str, session: str = "", **params: Any) -> Any:
        """One command; its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        os.write(self._write, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        ends_at = time.monotonic() + PATIENCE_S
        while (heard := self._hear(ends_at)).get("id") != self._number:
            self._note(heard)
        assert "error" not in heard, heard
        return heard["result"]

    def _hear(self, ends_at: float) -> dict[str, Any]:
        while b"\0" not in self._held:
            ready, _, _ = select.select([self._read], [], [], max(0.0, ends_at - time.monotonic()))
            assert ready, "the browser says nothing"
            data = os.read(self._read, 1 << 16)
            assert data, "the browser has ended"
            self._held += data
        line, _, self._held = self._held.partition(b"\0")
        found: dict[str, Any] = json.loads(line)
        return found

    def _note(self, heard: dict[str, Any]) -> None:
        params = heard.get("params", {})
        if heard.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(json.dumps(params["exceptionDetails"])[:600])
        elif heard.get("method") == "Log.entryAdded" and params["entry"]["level"] == "error":
            self.complaints.append(params["entry"]["text"])


class Page:
    """One page of it."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self.browser, self._session = browser, session

    def say(self, method: str, **params: Any) -> Any:
        return self.browser.say(method, self._session, **params)

    def run(self, script: str) -> Any:
        """What an expression is, as data."""
        told = self.say("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def until(self, script: str, what: str = "") -> Any:
        """Wait until an expression holds; what it is then."""
        ends_at = time.monotonic() + PATIENCE_S
        quiet = f"(() => {{ try {{ return {script}; }} catch {{ return false; }} }})()"  # its script may not run yet
        while not (found := self.run(quiet)):
            assert time.monotonic() < ends_at, f"never: {what or script}; {self.browser.complaints}"
            select.select([], [], [], 0.02)
        return found

    def tap(self, selector: str) -> None:
        """As a finger does."""
        self.until(f"document.querySelector({json.dumps(selector)}) !== null", selector)
        self.run(f"document.querySelector({json.dumps(selector)}).click()")

    def picture(self, file: Path) -> None:
        """What it looks like, as PNG."""
        file.write_bytes(base64.b64decode(self.say("Page.captureScreenshot", format="png")["data"]))

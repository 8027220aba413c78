"""The files of an application as routes: read once at the start, so that no request names a file (SEC-040)."""

import base64
import hashlib
from pathlib import Path, PurePosixPath
from typing import Final

from weft.base.errors import UserError
from weft.shell.http.limits import ASSET_BYTES_MAX
from weft.shell.http.messages import Request, Response, Route, Routes

INDEX: Final = "index.html"
KINDS: Final = {
    ".css": "text/css",
    ".html": "text/html",
    ".ico": "image/x-icon",
    ".jpg": "image/jpeg",
    ".js": "text/javascript",
    ".json": "application/json",
    ".png": "image/png",
    ".svg": "image/svg+xml",
    ".txt": "text/plain",
    ".woff2": "font/woff2",
}
"""By the end of a file's name; the same on every machine, whatever its own tables say."""


def assets(prefix: str, directory: Path) -> Routes:
    """Every file below a directory as a route below `prefix`, which ends in `/` and answers with `index.html`.

    A browser caches them, and asks each time whether they have changed: 304 if not. Links that lead out of the directory
    are left out. UserError `too-large` beyond ASSET_BYTES_MAX.
    """
    root, size, routes = directory.resolve(), 0, Routes()
    for path in sorted(root.rglob("*")):
        if not path.is_file() or not path.resolve().is_relative_to(root):
            continue
        name, body = path.relative_to(root).as_posix(), path.read_bytes()
        size += len(body)
        if size > ASSET_BYTES_MAX:
            text = f"the files of {directory} have more than {ASSET_BYTES_MAX:,} bytes together"
            raise UserError("too-large", text, "fewer or smaller files")
        routes[prefix + name] = _route(name, body)
        if name == INDEX:
            routes[prefix] = routes[prefix + name]
    return routes


def _route(name: str, body: bytes) -> Route:
    tag = '"' + base64.urlsafe_b64encode(hashlib.sha256(body).digest()[:18]).decode() + '"'
    kind = KINDS.get(PurePosixPath(name).suffix, "application/octet-stream")
    content_type = f"{kind}; charset=utf-8" if kind.startswith("text/") else kind
    headers = (("cache-control", "no-cache"), ("etag", tag))
    whole, same = Response(200, content_type, body, more=headers), Response(304, content_type, b"", more=headers)
    return Route(lambda request: _fresh(request, tag, whole, same))


def _fresh(request: Request, tag: str, whole: Response, same: Response) -> Response:
    return same if tag in request.headers.get("if-none-match", "") else whole

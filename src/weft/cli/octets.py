"""Bytes in JSON output."""

import base64
from typing import Any


def payload_json(payload: bytes) -> Any:
    r"""Text as text, anything else as `{"b64": …}`, as in answers of a node.

    >>> payload_json(b"<a/>"), payload_json(b"\xff")
    ('<a/>', {'b64': '/w=='})
    """
    try:
        return payload.decode()
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(payload).decode()}

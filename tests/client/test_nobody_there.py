"""What each client library of Python raises where nobody is: a typed error with a sentence and a mend (OPS-005)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import weft
import weft.catalog
import weft.doc
import weft.store
from weft.base.errors import UserError, WeftError
from weft.pipeline import arrow

NODE = (
    "weft up, or an endpoint, a state directory or a node's name as --node, node= or WEFT_NODE=; "
    "a node that was started with --state is called by that directory"
)
STORE = "weft up with a [store] in the node's file; or node=, --node or WEFT_STORE= with HOST:PORT"
BROKER = "weft up with a [catalog] in a node's file; broker= or WEFT_CATALOG= with HOST:PORT; of a closed fabric keys= or WEFT_KEYS="
DOC = "weft doc join SESSION starts one; --node NAME or DIRECTORY, or WEFT_DOC= says which"
LAKE = "--lake DIR, or weft up with a root that drains"
CLIENTS: dict[str, tuple[Callable[[], Any], type[WeftError], str]] = {
    "chain": (lambda: weft.chain_sync("nowhere"), UserError, NODE),
    "store": (lambda: weft.store.SyncClient("127.0.0.1:1"), weft.store.Unreachable, STORE),
    "catalog": (lambda: weft.catalog.SyncClient("127.0.0.1:1"), weft.catalog.Unreachable, BROKER),
    "documents": (lambda: weft.doc.SyncClient("nowhere"), weft.doc.Unreachable, DOC),
}


@pytest.mark.proves("OPS-005", part="clients in Python raise a typed error with a mend")
@pytest.mark.parametrize("name", CLIENTS)
def test_a_client_that_finds_nobody_says_what_helps(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    opened, kind, mend = CLIENTS[name]
    with pytest.raises(kind) as refused:
        opened().__enter__()
    assert mend == getattr(refused.value, "mend", None)


@pytest.mark.proves("OPS-005", part="clients in Python raise a typed error with a mend")
def test_a_notebook_without_a_lake_is_told_what_helps(tmp_path: Path) -> None:
    with pytest.raises(UserError) as refused:
        arrow(tmp_path, "latest")
    assert ("no-lake", LAKE) == (refused.value.code, refused.value.mend)

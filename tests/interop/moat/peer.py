"""A real MoaT-KV server, of any of three releases, in their environments: python peer.py NAME BROKER_PORT [INITIAL_VALUE].

`nK` listens on 127.0.0.1:BASE+K, and looks for all others in the same way. Prints `READY NAME`. Environment: BASE (27600),
CYCLE (10), GAP (2), DCYCLE (100), DGAP (10); LOAD: a file that it begins with.
"""

import os
import sys
from typing import Any

import anyio
from asyncscope import main_scope
from moat.util import attrdict

try:
    from moat.lib.path import P
except ImportError:
    from moat.util import P
try:
    from moat.kv.server import Server
except ImportError:
    from distkv.server import Server

HOST = "127.0.0.1"
CODEC = {}
try:
    from moat.lib.config import CFG, CfgStore
except ImportError:
    pass
else:  # 0.71 alone
    CFG.set_real_cfg(CfgStore("moat", load_all=None))
    CFG.with_("moat")
    CFG.with_("moat.kv")
    CODEC = {"codec": "std-msgpack"}


def seconds(name: str, default: str) -> float:
    return float(os.environ.get(name, default))


def settings(name: str, broker: str) -> Any:
    base = int(os.environ.get("BASE", "27600"))
    port = base + int(name[1:])
    return attrdict(
        conn=attrdict(host=HOST, port=port, ssl=False, init_timeout=5, auth=None, name=None),
        server=attrdict(
            backend="mqtt",
            mqtt=attrdict(uri=f"mqtt://{HOST}:{broker}/", **CODEC),
            root=P("moat.kv"),
            bind=[attrdict()],
            bind_default=attrdict(host=HOST, port=port, ssl=False),
            ping=attrdict(cycle=seconds("CYCLE", "10"), gap=seconds("GAP", "2")),
            delete=attrdict(cycle=seconds("DCYCLE", "100"), gap=seconds("DGAP", "10"), version=1),
        ),
        hostmap={f"n{place}": [HOST, base + place] for place in range(1, 10)},
    )


async def main(name: str, broker: str, init: list[str]) -> None:
    async with main_scope("server"), anyio.create_task_group() as tasks:
        ready = anyio.Event()
        server = Server(name, cfg=settings(name, broker), **({"init": init[0]} if init else {}))
        if "LOAD" in os.environ:
            await server.load(path=os.environ["LOAD"], local=True)
        tasks.start_soon(lambda: server.serve(ready_evt=ready))
        await ready.wait()
        sys.stdout.write(f"READY {name}\n")
        sys.stdout.flush()
        await anyio.sleep_forever()


anyio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:], backend="trio")

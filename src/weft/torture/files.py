"""Writes the configuration of the fabric: the fleet's file, and a file for each node."""

from pathlib import Path
from typing import Final

from weft.torture import limits
from weft.torture.clients import CATALOG, SESSION, Machine
from weft.torture.plan import COLLECTORS, NODES, ROOT

DOCUMENTS: Final = (ROOT, "collector-1", "sensor-1", "sensor-4")
STORES: Final = (ROOT, "collector-2", "sensor-2", "sensor-3", "sensor-4")
BROKER: Final = "collector-1"
FAR: Final = "collector-2"
"""The machine whose broker has a second network, which is bridged to the first."""
NEAR_NET: Final = "near"
FAR_NET: Final = "far"
BEHIND: Final = 10  # the first port after a node's ten: its catalog's, followed by three more of the catalog
BRIDGE: Final = 3
DOCUMENT: Final = BEHIND + BRIDGE + 1
FLEET_NAME: Final = "torture"
FLEET: Final = """\
[fleet]
name = "torture"
heartbeat = "500ms"

[metric.cpu]
detail = "CPU"
rate = "500ms"

[metric.memory]
detail = "MEMORY"
rate = "1s"

[metric.load]
detail = "LOAD"
rate = "1s"

[[chains.filter]]
name = "up"
kind = "forward"
types = ["t.*"]
dir = "in"

[[chains.filter]]
name = "keep"
kind = "journal"
types = ["t.*"]
dir = "in"

[group.lab]
collectors = [{collectors}]
members = ["*"]
metrics = ["cpu", "memory", "load"]
filters = ["up", "keep"]
"""
NODE: Final = """\
[fleet]
name = "torture"
beacon_port = {beacon_port}
heartbeat = "500ms"
beat_s = 0.5
dead_s = 2.5

[node]
name = "{name}"
host = "{host}"
port = {port}
state = "{state}"
flush_s = 0.5
{more}
[journal]
free_megabytes = {free}

[lake]
path = "{lake}"
age_s = 5
idle_s = 2
"""
OPEN: Final = """
[security]
mode = "none"
allow_insecure = true
"""
STORE: Final = """
[store]
clock = "1s"
open = true
peers = [{peers}]
"""
DOC: Final = """
[doc.session.{session}]
schema = "plain"
mdns = false
listen = "{host}:{port}"
advertise = "{host}:{port}"
peers = [{peers}]
operator = "{name}"

[doc.timing]
beat = "1s"
evasive = "2s"
gone = "4s"
gossip = "1s"

[limits]
memory_megabytes = 1024

[limits.cores]
document = 400
"""
# A log takes about 3,400 bytes an entry at every node; a node with a lower limit would rightly fall behind the others.
BROKERS: Final = """
[catalog]
host = "{host}"
port = {port}
beacons = false
"""
BRIDGED: Final = """\
net = "{net}"

[catalog.bridge]
to = [{to}]
export = ["*"]
import = ["*"]
"""


def write_files(place: Path, lake: Path, machines: dict[str, Machine]) -> None:
    """Write all files of a run."""
    collectors = ", ".join(f'"{machines[name].host}:{machines[name].port}"' for name in COLLECTORS)
    (place / "fleet.toml").write_text(FLEET.format(collectors=collectors), "utf-8")
    for name in NODES:
        (place / f"{name}.toml").write_text(node_text(machines, name, place, lake), "utf-8")


def node_text(machines: dict[str, Machine], name: str, place: Path, lake: Path) -> str:
    """The file of one node."""
    at = machines[name]
    more = f'level = "root"\nconfig = "{place / "fleet.toml"}"\n' if name == ROOT else ""
    more += f"join = [{_addresses(machines, (ROOT, *COLLECTORS), name)}]\n"
    text = NODE.format(
        **at._asdict(), beacon_port=machines[ROOT].port, more=more, free=limits.FREE_MEGABYTES, lake=lake
    )
    text += "" if at.is_closed else OPEN
    if name in STORES:
        text += STORE.format(peers=_addresses(machines, STORES, name))
        text += 'found = "torture"\n' if name == ROOT else ""
    if name in DOCUMENTS:
        peers = _addresses(machines, DOCUMENTS, name, DOCUMENT)
        text += DOC.format(session=SESSION, host=at.host, port=at.port + DOCUMENT, peers=peers, name=name)
    if name in (BROKER, FAR):
        text += BROKERS.format(host=at.inside, port=broker_port(at)) + _bridge(machines[BROKER], is_far=name == FAR)
    return text


def _bridge(near: Machine, *, is_far: bool) -> str:
    """The bridge's part of a node's file: the far broker dials the near one."""
    to = f'"{near.host}:{broker_port(near) + BRIDGE}"' if is_far else ""
    return BRIDGED.format(net=FAR_NET if is_far else NEAR_NET, to=to)


def broker_port(at: Machine) -> int:
    """The port of the catalog: its usual one if the node has a machine of its own."""
    return CATALOG if at.namespace else at.port + BEHIND


def _addresses(machines: dict[str, Machine], names: tuple[str, ...], besides: str, offset: int = 0) -> str:
    chosen = [machines[name] for name in names if name != besides]
    return ", ".join(f'"{at.host}:{at.port + offset}"' for at in chosen)

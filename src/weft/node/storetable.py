"""`[store]` of a node's file: whether it holds the store, under which name, and how it finds other members (docs/store.md)."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta

from weft.base.endpoints import host_of, is_endpoint
from weft.base.errors import PeerError
from weft.base.now import MILLISECOND, SECOND
from weft.base.settings import span_ns
from weft.wire.store.pack import pack

CLIENTS: Final = 5  # offset in the node's block of ports
PORT_MAX: Final = 65_535
NAME_BYTES_MAX: Final = 64  # STO-001
CLOCK_NS: Final = (50 * MILLISECOND, 3_600 * SECOND)
ABSENT_NS: Final = (3_600 * SECOND, 3_650 * 86_400 * SECOND)
EMBEDDED: Final = "embedded"
LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class StoreTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """`[store]`: with this table, even an empty one, the node holds the whole store."""

    name: str = ""
    """Name of the node in the store; empty: as in `[node]`."""
    found: Any = None
    """The first value of the root entry. With it the node founds the store, if it has no entries and finds no member."""
    port: Annotated[int, Meta(ge=0, le=PORT_MAX)] = 0
    """Port for clients; 0: the node's first port + 5. MoaT-KV's programs expect 27586."""
    peers: tuple[str, ...] = ()
    """`host:port` of other members, with the first of their ten ports, where beacons do not reach them."""
    mesh: bool = True
    """Whether members connect to one another directly, without a broker."""
    broker: str = ""
    """An MQTT broker, `host:port`; `embedded` or `embedded:PORT`: one inside this node."""
    broker_tls: bool = False
    """Whether the connection to the broker uses TLS; then the broker's certificate must match its name."""
    broker_ca: str = ""
    """File with the CA of the broker's certificate; empty: the CAs that this machine trusts."""
    broker_certificate: str = ""
    """File with this node's own certificate and key, if the broker requires one."""
    broker_user: str = ""
    broker_password: str = ""
    """File whose first line is the password. A relative path is below the state directory."""
    require_mac: bool = True
    """Whether, on a closed fabric and in the seed dialect, messages from the broker need the fabric's MAC (LNK-030)."""
    root: str = ""
    """Prefix of topics; empty: `weft`, or `moat/kv` for the moat dialect."""
    dialects: tuple[Literal["seed", "moat"], ...] = ("seed",)
    keys: Literal["seed", "moat"] = "seed"
    """The rule by which two elements of a path are equal; chosen for the whole store when it is founded (R4)."""
    clock: float | str = 5.0
    ping_length: Annotated[int, Meta(ge=2, le=32)] = 4
    chain_length: Annotated[int, Meta(ge=2, le=32)] = 5
    vary: Annotated[int, Meta(ge=1, le=10)] = 3
    cycle: float | str = 10.0
    gap: float | str = 2.0
    del_cycle: float | str = 100.0
    del_gap: float | str = 10.0
    absent_max: float | str = "off"
    """How long a member may be away until it is dropped by itself; "off": for ever (DEL-006)."""
    serve_stale: bool = False
    open: bool = False
    """Whether other machines may connect without authentication (LNK-030, ADM-003): for the moat dialect, and clients of
    other machines."""
    hostmap: dict[str, str] = {}
    """`host:port` of the client ports of foreign nodes, by their names (CLN-022)."""

    @property
    def topics(self) -> str:
        """The prefix of topics."""
        return self.root or ("moat/kv" if "moat" in self.dialects else "weft")

    def client_port(self, base_port: int) -> int:
        """The port for clients."""
        return self.port or base_port + CLIENTS


def faults_of(table: StoreTable, host: str = "127.0.0.1") -> Iterator[str]:
    """Errors in the table of a node that listens at `host`, one line each (CFG-071)."""
    name = table.name
    if name and not (len(name.encode()) <= NAME_BYTES_MAX and name.isprintable() and " " not in name):
        yield f"E15 store.name {name!r}: 1 to {NAME_BYTES_MAX} bytes, printable, without spaces"
    for what in ("clock", "cycle", "gap", "del_cycle", "del_gap"):
        if not CLOCK_NS[0] <= (span_ns(getattr(table, what)) or 0) <= CLOCK_NS[1]:
            yield f'E04 store.{what} {getattr(table, what)!r}: "50ms" to "1h"'
    if table.absent_max != "off" and not ABSENT_NS[0] <= (span_ns(table.absent_max) or 0) <= ABSENT_NS[1]:
        yield f'E04 store.absent_max {table.absent_max!r}: "off", or "1h" to "3650d"'
    if (span_ns(table.cycle) or 0) < 3 * (span_ns(table.gap) or 0):
        yield "E04 store.cycle: at least three times store.gap (PNG-030)"
    if not table.dialects:
        yield 'E04 store.dialects: "seed", "moat", or both'
    yield from _endpoint_faults(table)
    if host in LOOPBACK and any(host_of(peer) not in LOOPBACK for peer in table.peers if is_endpoint(peer)):
        yield f"E05 store.peers: other machines cannot reach a node that listens at {host}; set node.host"
    try:
        pack(table.found)
    except (PeerError, ValueError, TypeError, OverflowError) as error:
        yield f"E04 store.found: {error}"


def _endpoint_faults(table: StoreTable) -> Iterator[str]:
    for what, endpoints in (("peers", table.peers), ("hostmap", tuple(table.hostmap.values()))):
        if not all(map(is_endpoint, endpoints)):
            yield f"E05 store.{what}: host:port each"
    broker = table.broker
    is_inside = broker.partition(":")[0] == EMBEDDED
    if broker and not is_endpoint(broker if not is_inside or ":" in broker else f"{broker}:1"):
        yield f'E05 store.broker {broker!r}: host:port, "embedded", or "embedded:PORT"'
        return
    yield from _login_faults(table, is_inside=is_inside)
    if broker and not is_inside and "moat" in table.dialects and host_of(broker) not in LOOPBACK and not table.open:
        yield "E05 store.broker: messages of the moat dialect are not signed; beyond this machine it needs open = true"
    if not table.mesh and not broker:
        yield "E03 store.broker: with mesh = false, members can only meet at a broker"
    if "moat" in table.dialects and not broker:
        yield "E03 store.broker: the moat dialect needs an MQTT broker, where the MoaT-KV servers are"


def _login_faults(table: StoreTable, *, is_inside: bool) -> Iterator[str]:
    """Errors in the settings of TLS, user and password."""
    broker, has_files = table.broker, bool(table.broker_ca or table.broker_certificate)
    if has_files and not table.broker_tls:
        yield "E05 store.broker_ca, store.broker_certificate: need broker_tls = true"
    if (table.broker_tls or table.broker_user) and (is_inside or not broker):
        yield "E05 store.broker_tls, store.broker_user: need a broker = HOST:PORT, not the one inside this node"
    if bool(table.broker_user) != bool(table.broker_password):
        yield "E05 store.broker_user and store.broker_password: give both, or none"
    elif table.broker_user and not table.broker_tls and is_endpoint(broker) and host_of(broker) not in LOOPBACK:
        yield "E05 store.broker_password: to another machine it is sent with TLS only; set broker_tls = true"

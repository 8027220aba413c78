"""All chains with their links and counters, as plain data (`ShowChains`; CHN-082, CHN-084)."""

from typing import Any

import msgspec

from weft.cores.chains.clientlink import AwayLink, ClientLink, HolderLink
from weft.cores.chains.context import Context, Flow, MailCounters
from weft.cores.chains.engine import Engine
from weft.cores.chains.inbox import Inbox
from weft.cores.chains.parcel import IN, OUT
from weft.cores.chains.roster import Chain, Roster
from weft.cores.chains.sessions import Sessions


def show(context: Context, roster: Roster, inbox: Inbox, engine: Engine) -> dict[str, Any]:
    """Each chain that has links or has seen a message, its links in order."""
    return {
        "name": context.settings.name,
        "chains": [_chain(chain) for chain in roster if chain.links or chain.flow.accepted],
        "others": {name: _flow(flow) for name, flow in roster.others.items()},
        "inbox": {"entries": len(inbox), "bytes": inbox.bytes},
        "parked": engine.parked,
        "copies": _flow(context.copies),
        "counters": msgspec.to_builtins(context.counters),
    }


def show_clients(sessions: Sessions) -> dict[str, Any]:
    """The attached clients with their errors (CLI-006), and how many have come and gone."""
    return {
        "clients": [
            {
                "name": session.name,
                "pid": session.pid,
                "errors": dict(session.errors),
                "copies_lost": session.post.copies_lost,
            }
            for session in sessions
        ],
        "attached": msgspec.to_builtins(sessions.counters),
    }


def totals(context: Context, roster: Roster, inbox: Inbox, engine: Engine, sessions: Sessions) -> dict[str, Any]:
    """The sums over all chains, for the status of a node."""
    ways = {OUT: Flow(), IN: Flow()}
    for chain in roster:
        ways[chain.direction].add(chain.flow)
    for direction, others in roster.others.items():
        ways[direction].add(others)
    flow = Flow()
    for way in ways.values():
        flow.add(way)
    return {
        **_flow(flow),
        "ways": {name: {**_flow(way), "held": engine.held(name)} for name, way in ways.items()},
        "clients": len(sessions),
        "links": roster.count,
        "parked": engine.parked,
        "inbox_entries": len(inbox),
        "inbox_bytes": inbox.bytes,
        "welcomed": sessions.counters.welcomed,
        "unsent": sessions.counters.unsent,
        "copies_lost": sessions.counters.copies_lost + sum(session.post.copies_lost for session in sessions),
        "copies": {**_flow(context.copies), "held": engine.copies},
        "readers": len(engine.readers),
        "readers_away": engine.readers.away,
        "sends": _sends(context.counters),
    }


def _sends(counters: MailCounters) -> dict[str, Any]:
    """The sends of programs: heard = into a chain + refused + repeated + sent again without having got the status."""
    return {"heard": counters.heard, "refused": dict(counters.refused), "repeated": counters.repeated_tags}


def _chain(chain: Chain) -> dict[str, Any]:
    return {
        "direction": chain.direction,
        "type": chain.type,
        **_flow(chain.flow),
        "links": [_link(link) for link in chain.links],
    }


def _flow(flow: Any) -> dict[str, Any]:
    return {**msgspec.to_builtins(flow), "in_flight": flow.in_flight}


def _link(link: Any) -> dict[str, Any]:
    counters = msgspec.to_builtins(link.counters)
    if isinstance(link, AwayLink):
        about = {"kind": "client", "type": link.type, "access": "confirm", "state": "AWAY"}
        return {"name": link.name, "place": link.place, "counters": counters, **about}
    if not isinstance(link, ClientLink):
        return {"name": link.name, "kind": link.spec.kind, "place": str(link.spec.place), "counters": counters}
    shown = {
        "name": link.name,
        "kind": "client",
        "reg": link.reg,
        "type": link.type,
        "place": link.place,
        "access": link.access,
        "counters": counters,
    }
    if isinstance(link, HolderLink):
        shown |= {
            "state": link.state.name,
            "policy": link.policy,
            "pending": len(link.pending),
            "backlog": len(link.backlog),
            "latency": link.latency,
        }
    return shown

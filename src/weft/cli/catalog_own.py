"""`weft catalog register`, `update`, `deregister`: records by hand, for what cannot register itself."""

import json as to_json
from typing import Annotated, Any, Final

from cyclopts import Parameter

from weft.base.errors import UserError
from weft.cli.catalog_calls import Many, at_catalog, failed, pairs
from weft.cli.catalog_lines import line, print_json
from weft.cli.chain_ends import until_any
from weft.cli.kit.exits import DENIED, DONE, NOT_SO, complain
from weft.cli.kit.options import Flag
from weft.client.catalog.client import Client
from weft.client.catalog.errors import CatalogError, CatalogTimeout, NotFound, Unreachable
from weft.client.link.keyring import Keyring

Id = Annotated[str | None, Parameter(name="--id", show_default=False)]
Broker = Annotated[str | None, Parameter(show_default=False)]
BEATS: Final = 2
"""Beats per interval: one may be lost."""
INTERVAL_MS: Final = 1_000
LOCAL: Final = "127.0.0.1"
"""A wildcard: the broker replaces it by the address the registration came from."""


def register(  # tidy: each is a key of the record
    name: str,
    /,
    *,
    ip: str | None = None,
    port: int | None = None,
    instance: Id = None,
    function: str | None = None,
    tag: Many = (),
    meta: Many = (),
    interface: Many = (),
    topic: Many = (),
    version: str | None = None,
    weight: int | None = None,
    health: str | None = None,
    heartbeat: int | None = None,
    record: str = "{}",
    keep: Flag = False,
    broker: Broker = None,
    json: Flag = False,
) -> int:
    """Register a service that cannot do it itself: `weft catalog register printer --ip 10.0.0.9 --port 9100 --tag office`.

    Without --keep it stays registered as long as it answers the broker's pings; if it has no port, for three intervals.

    Args:
        name: of the service.
        ip: the address at which to call it; default: this machine, if --port is given.
        port: the port at which to call it; without one nobody can call or ping it.
        instance: id of this instance; default: ip:port.
        function: what it does.
        tag: one tag; several may be given.
        meta: KEY=VALUE; several may be given.
        interface: KIND=IP:PORT, e.g. pub=10.0.0.9:7000; several may be given.
        topic: a prefix of what it publishes, whose last values the broker keeps; default: all.
        version: its version.
        weight: its share where instances are picked by weight.
        health: passing, warning, critical or unknown.
        heartbeat: its interval in milliseconds (1000).
        record: further keys, as a JSON object.
        keep: send its beats until Ctrl-C, then remove it.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: the broker's approval as JSON.
    """
    options = {"ip": ip, "port": port, "id": instance, "function": function, "version": version, "weight": weight}
    options |= {"health": health, "heartbeat": heartbeat}
    here = {} if port is None else {"ip": LOCAL}
    wanted_record = {**here, **_object(record), **{key: value for key, value in options.items() if value is not None}}
    several = {"tags": list(tag), "metadata": pairs(meta, "--meta"), "topics": list(topic)}
    wanted_record |= {key: value for key, value in several.items() if value}
    if interface:
        wanted_record["interfaces"] = {kind: _place(place) for kind, place in pairs(interface, "--interface").items()}

    async def work(client: Client) -> int:
        approved = await client.register(name, wanted_record)
        if json:
            print_json(approved)
        else:
            line(
                (name, "bold"), (f" is registered as {approved.get('instance') or 'a service'} at {client.broker}", "")
            )
        if not json:
            stays = "until Ctrl-C" if keep else "for as long as it answers pings; --keep beats for it"
            complain(f"it stays {stays}", DONE)
        if keep:
            await until_any(_beat(client, name, wanted_record, approved))
            await client.leave(name, str(approved.get("instance") or ""))
        return DONE

    return at_catalog(broker, work)


async def _beat(client: Client, name: str, wanted_record: dict[str, Any], approved: dict[str, Any]) -> None:
    """Send beats until cancelled, also while the broker is away."""
    import asyncio

    while True:
        interval_ms = approved.get("heartbeat") or wanted_record.get("heartbeat") or INTERVAL_MS
        await asyncio.sleep(float(interval_ms) / 1_000 / BEATS)
        try:
            if not await client.beat(name, str(approved.get("instance") or "")):
                approved = await client.register(name, wanted_record)
                complain(f"the broker had forgotten {name}; it is registered again", DONE)
        except CatalogTimeout as error:
            complain(f"{error.text}; trying again", DONE)


def update(name: str, /, *changes: str, instance: Id = None, broker: Broker = None, json: Flag = False) -> int:
    """Change keys of a record of this machine: `weft catalog update printer port=9101 'tags=["office"]' function=null`.

    A program that registers itself sends its own record again whenever it reconnects, and so undoes the change.

    Args:
        name: of the service.
        changes: KEY=VALUE, the value as JSON, else text; null takes the key away.
        instance: id of the instance, if there are several.
        broker: host:port; default: the broker of this machine, else the first beacon.
        json: what was changed, as JSON.
    """
    if not changes:
        raise UserError("usage", "nothing to change", "weft catalog update NAME KEY=VALUE")
    changed = {key: _value(value) for key, value in pairs(changes, "").items()} | ({"id": instance} if instance else {})

    async def work(client: Client) -> int:
        await client.update(name, changed)
        if json:
            print_json({"name": name, **changed})
        else:
            line((name, "bold"), (" is changed", ""))
        return DONE

    return at_catalog(broker, work)


def deregister(
    name: str,
    instance: str | None = None,
    /,
    *,
    state: str | None = None,
    broker: Broker = None,
    json: Flag = False,
) -> int:
    """Remove a service. The user who runs the broker may remove any, on its machine; others only those of their machine.

    A program that still runs registers again within two of its beats. Stop the program: then its service goes by itself.

    Args:
        name: of the service.
        instance: which one; default: the only one.
        state: the state directory of the broker's node, if several run here.
        broker: host:port of a broker; then only services that this machine has registered can be removed.
        json: the outcome, as JSON.
    """
    if state is not None and broker is not None:
        raise UserError("usage", "--state and --broker each choose a broker", "only one of them")
    if broker is None or Keyring.of() is not None:
        status = _as_keeper(name, instance or "", Client(broker), state, json=json)
        if status is not None:
            return status

    async def work(client: Client) -> int:
        entries = [one for one in await client.details(name) if instance in (None, one.instance)]
        here = [one for one in entries if one.state != "inactive"]
        if not here:
            raise NotFound(f"there is no instance {instance or ''} of {name!r}".replace("  ", " "), service=name)
        if len(here) > 1:
            raise UserError(
                "usage",
                f"{len(here)} instances of {name!r}: {', '.join(one.instance for one in here)}",
                f"weft catalog deregister {name} {here[0].instance}",
            )
        await client.leave(name, here[0].instance)
        after = [one for one in await client.details(name) if one.instance == here[0].instance]
        if after and after[0].state != "inactive":
            text = f"{name} {here[0].instance} was registered by {after[0].facts.get('owner') or 'another machine'}"
            return complain(f"{text}\n  try: the same on the broker's machine, as the user who runs the broker", DENIED)
        _show_outcome(name, here[0].instance, "left", json=json)
        return DONE

    return at_catalog(broker, work)


def _as_keeper(name: str, instance: str, client: Client, state: str | None, *, json: bool) -> int | None:
    """Use the socket in the state directory, or an operator's key; None if this user cannot administer it."""
    import asyncio

    try:
        asyncio.run(client.deregister(name, instance, state=state))
    except Unreachable as error:
        return failed(error) if state is not None or "several" in error.text else None
    except NotFound as error:
        return complain(f"{error.text}\n  try: weft catalog ls --all", NOT_SO)
    except CatalogError as error:
        return None if error.code == "not-authorised" else failed(error)
    _show_outcome(name, instance, "removed", json=json)
    return DONE


def _show_outcome(name: str, instance: str, what: str, *, json: bool) -> None:
    if json:
        print_json({"name": name, "instance": instance or None, "is": what})
    else:
        line(
            (name, "bold"),
            (f" {instance}" if instance else "", ""),
            (f" is {what}" if what == "removed" else f" has {what}", ""),
        )


def _object(text: str) -> dict[str, Any]:
    found = _value(text)
    if not isinstance(found, dict):
        raise UserError("usage", f"--record {text!r} is no JSON object", """--record '{"checks": []}'""")
    return found


def _value(text: str) -> Any:
    """As JSON, else text.

    >>> _value("9101"), _value("null"), _value("10.0.0.9")
    (9101, None, '10.0.0.9')
    """
    try:
        return to_json.loads(text)
    except ValueError:
        return text


def _place(text: str) -> dict[str, Any]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise UserError("usage", f"{text!r} is no IP:PORT", "--interface pub=10.0.0.9:7000")
    return {"ip": host.strip("[]"), "port": int(port)}

"""The catalog over HTTP, read-only, in the form of Consul's API (CAT-074).

    /v1/catalog/services              every name, with the tags of its first instances
    /v1/catalog/service/NAME          the instances of a name, in every state
    /v1/health/service/NAME           the same with their checks; ?passing=1: only those that may be called

Consul's blocking queries do not exist here: `index` and `wait` are ignored. Changes are published on the catalog's own port.
"""

import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final
from urllib.parse import parse_qs, unquote

from weft.cores.catalog.core import Catalog
from weft.cores.catalog.instances import Instance
from weft.cores.catalog.limits import LIST_MAX, LISTED_MAX, PER_NAME_MAX
from weft.cores.catalog.records import effective_address
from weft.cores.catalog.states import State
from weft.shell.http.messages import JSON, Request, Response, Route, Routes, refusal

STATUS: Final = {"passing": "passing", "unknown": "passing", "warning": "warning", "critical": "critical"}
"""Consul's word for each health. Consul has none for a service that reports none: it counts as passing."""
OFF: Final = ("", "0", "false")
"""Values of `passing` that ask for all instances; an empty one asks for the passing ones."""


def routes_of(catalog: Catalog) -> Routes:
    """The pages of a broker."""

    def of_name(show: Callable[[Catalog, Instance], dict[str, Any]]) -> Route:
        return Route(lambda request: _answer(catalog, [show(catalog, one) for one in _instances(catalog, request)]))

    return {
        "/v1/catalog/services": Route(lambda _: _services(catalog)),
        "/v1/catalog/service/*": of_name(_entry),
        "/v1/health/service/*": of_name(_health),
    }


def _services(catalog: Catalog) -> Response:
    names = catalog.book.names()
    if len(names) > LIST_MAX:
        return refusal(
            413, "too-many", f"{len(names):,} names: this page has {LIST_MAX:,} at most", "weft catalog ls --json"
        )
    return _answer(catalog, {name: _tags(islice(catalog.book.any_of_name(name), LISTED_MAX)) for name in names})


def _tags(instances: Iterable[Instance]) -> list[str]:
    return sorted({tag for one in instances if one.is_live for tag in one.record.get("tags", ())})


def _instances(catalog: Catalog, request: Request) -> list[Instance]:
    name = unquote(request.path.rpartition("/")[2], errors="replace")
    found = islice(catalog.book.of_name(name), PER_NAME_MAX)
    if parse_qs(request.query, keep_blank_values=True).get("passing", ["0"])[0].lower() in OFF[1:]:
        return list(found)
    return [one for one in found if _status(one) == "passing"]


def _status(instance: Instance) -> str:
    if not instance.is_live:
        return "critical"
    return "warning" if instance.state is State.SUSPECT else STATUS[instance.health]


def _place(catalog: Catalog, instance: Instance) -> tuple[str, int]:
    """Address and port at which programs call it, as in the catalog's answers; an empty address and port 0: none."""
    shown = catalog.answers.shown(instance)
    address = effective_address(shown, instance.observed_ip, "never")
    return (str(address.ip), int(address.port)) if address else ("", 0)


def _node(instance: Instance) -> dict[str, str]:
    return {"Node": instance.observed_ip, "Address": instance.observed_ip, "Datacenter": instance.net}


def _entry(catalog: Catalog, instance: Instance) -> dict[str, Any]:
    ip, port = _place(catalog, instance)
    return {
        **_node(instance),
        "ServiceID": instance.id,
        "ServiceName": instance.name,
        "ServiceAddress": ip,
        "ServicePort": port,
        "ServiceTags": list(instance.record.get("tags", ())),
        "ServiceMeta": dict(instance.record.get("metadata", {})),
        "ModifyIndex": instance.index,
    }


def _health(catalog: Catalog, instance: Instance) -> dict[str, Any]:
    ip, port = _place(catalog, instance)
    check = {
        "CheckID": "weft",
        "Name": "as the broker sees it",
        "Status": _status(instance),
        "Output": instance.reason or instance.state.name.lower(),
        "ServiceID": instance.id,
        "ServiceName": instance.name,
    }
    service = {
        "ID": instance.id,
        "Service": instance.name,
        "Address": ip,
        "Port": port,
        "Tags": list(instance.record.get("tags", ())),
        "Meta": dict(instance.record.get("metadata", {})),
        "ModifyIndex": instance.index,
    }
    return {"Node": _node(instance), "Service": service, "Checks": [check]}


def _answer(catalog: Catalog, content: Any) -> Response:
    """An answer with the index of the last change, which Consul's clients compare; for them it is never 0."""
    index = ("x-consul-index", str(max(1, catalog.context.index)))
    return Response(200, JSON, json.dumps(content).encode() + b"\n", more=(index,))

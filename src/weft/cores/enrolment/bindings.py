"""Known keys as the configuration has them, and what a root writes of them (SEC-024, SEC-025).

All bindings stand under `/CONFIG/global/key/`, so that each node knows the key of every node: halves of a split keep
working, and nodes of different groups that share the store can talk. A root writes its own binding, and renews bindings
with less than half of their time left. A revoked key has no binding any more, so it is not renewed.
"""

from collections.abc import Callable

import msgspec

from weft.base.endpoints import host_of
from weft.base.errors import PeerError
from weft.base.keys import Binding, binding_key, bound_node, decode_binding, encode_binding
from weft.base.now import SECOND, Now
from weft.cores.enrolment import limits
from weft.cores.enrolment.context import Context, Then, until_of
from weft.cores.enrolment.messages import KeyRevoked, KeyShown, KeysRevoked, KeysShown, RevokeKey, ShowKeys

LEADS = "collector"
"""The role of keys whose nodes may be root."""


class Bindings:
    """All bindings known here."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.known: dict[bytes, Binding] = {}
        self._places: dict[bytes, str] = {}
        """The key of the configuration for each binding."""
        self.look_at: int | None = None
        """When to check for bindings to write, monotonic ns."""

    def learn(self, pairs: tuple[tuple[str, bytes | None], ...], now: Now) -> None:
        """Apply changed pairs; an unreadable value counts as absent."""
        has_changed = False
        for key, value in pairs:
            node = bound_node(key)
            if node is None:
                continue
            has_changed = True
            self._take(node, key, value)
        if has_changed:
            self.look_at = now.mono

    def _take(self, node: bytes, key: str, value: bytes | None) -> None:
        self.known.pop(node, None)
        self._places.pop(node, None)
        if value is None:
            return
        try:
            self.known[node] = decode_binding(value)
        except PeerError:
            return
        self._places[node] = key

    def named(self, name: str) -> bytes | None:
        """The node with this name; None: there is none."""
        if name == self.context.settings.name:
            return self.context.node
        return next((node for node, each in self.known.items() if each.name == name), None)

    def leaders(self) -> dict[str, Binding]:
        """The root, and the nodes that may become root, by UUID in hex; as many as fit into a WELCOME."""
        own = self.context.node
        others = [node for node, each in self.known.items() if LEADS in each.roles and node != own]
        chosen = [own, *others][: limits.WELCOME_KEYS_MAX]
        return {node.hex(): self.known[node] for node in chosen if node in self.known}

    # Writes of a root

    def look(self, now: Now) -> None:
        """Keep this root's own binding up to date, and renew those of others."""
        self.look_at = now.mono + limits.LOOK_NS
        if not self.context.can_invite:
            return
        if self.known:
            self.write_own(now)
        for node, each in list(self.known.items()):
            if each.until and each.until - now.wall // SECOND < limits.RENEW_S:
                self.write(node, msgspec.structs.replace(each, until=until_of(now, each)))

    def write_own(self, now: Now) -> None:
        """Write this root's own binding where it is missing or old; the first invitation writes the first one.

        From the first binding on, the configuration alone defines which nodes the fabric knows, so none is written
        earlier.
        """
        own = self.known.get(self.context.node)
        if own is None or self.context.curve not in own.curve:
            self.write(self.context.node, self._own(own, now))
        elif own.host != (host := host_of(self.context.settings.endpoint)):
            self.write(self.context.node, msgspec.structs.replace(own, host=host))

    def _own(self, before: Binding | None, now: Now) -> Binding:
        name, until = self.context.settings.name, until_of(now, before)
        host = host_of(self.context.settings.endpoint)
        return Binding(curve=(self.context.curve,), name=name, roles=(LEADS,), host=host, until=until)

    def write(self, node: bytes, binding: Binding, then: Then | None = None) -> None:
        """Request the write of a binding; if it cannot be written now, it is checked again later."""

        def written(code: int, now: Now) -> None:
            if code:
                self.look_at = now.mono + limits.RETRY_NS

        self.context.want(self._places.get(node, binding_key(node)), encode_binding(binding), then or written)

    # Orders

    def show(self, order: ShowKeys, missing: Callable[[bytes], tuple[str, ...]]) -> None:
        """List the known keys, by name; `missing`: nodes that do not know a node's next key yet."""
        rows = sorted(self.known.items(), key=lambda item: item[1].name)
        shown = tuple(KeyShown(n.hex(), b.name, b.roles, b.names, b.curve, b.until, missing(n)) for n, b in rows)
        self.context.reply(order.ticket, KeysShown(shown))

    def revoke(self, order: RevokeKey, now: Now) -> None:
        """Delete the binding of a node's keys; answered when that is durable."""
        node = self.named(order.node) or _node_of(order.node)
        binding = self.known.get(node) if node else None
        if node is None or binding is None:
            self.context.refuse(order.ticket, "not-found", f"no key of {order.node[:64]!r} is known")
        elif not self.context.is_root:
            self.context.refuse(order.ticket, "not-root", "only the root revokes keys")
        elif node == self.context.node:
            text = "this is the root's own key: without it nobody would be let in by anybody"
            self.context.refuse(order.ticket, "own-key", text)
        else:
            self._forget(node, binding, order.ticket)

    def _forget(self, node: bytes, binding: Binding, ticket: int) -> None:
        del self.known[node]  # at once: a renewal that is due in this turn would bring the key back

        def written(code: int, _: Now) -> None:
            if code:
                self.known[node] = binding
                self.context.refuse(ticket, "busy", "the configuration cannot be written now")
            else:
                self.context.tell(KeyRevoked(node.hex(), binding.name))
                self.context.reply(ticket, KeysRevoked(node.hex(), binding.name))

        self.context.want(self._places[node], b"", written)


def _node_of(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return None

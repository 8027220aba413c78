"""The keys of a program on a closed fabric, and which key to expect where (SEC-013, CAT-060).

`weft join TOKEN`, with an invitation for the role `service` or `reader`, writes a directory with the program's own key
pair and the keys of the nodes that the root told it about. On other machines a program talks to those nodes only, and
never without keys. On loopback, where foreign protocols have no keys, a server without keys is accepted, too.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

import msgspec

from weft.base.endpoints import host_of, is_loopback
from weft.base.errors import UNREADABLE, UserError
from weft.base.keys import Keys, Trust, pair_of
from weft.client.link.limits import KEY_FILE_BYTES_MAX, SERVERS_MAX
from weft.client.link.opening import Curve, Target

VARIABLE: Final = "WEFT_KEYS"
"""The environment variable with the directory of keys, if the program does not name one."""
PLAIN: Final = ""
"""Stands in place of a key: connect without keys."""
FOLDER: Final = "keys"
SECRET: Final = "node.key_secret"  # noqa: S105  # a name of a file
KNOWN: Final = "known.json"
OTHERS: Final = 0o077  # permission bits that must not be set: those of everybody but the owner
AGAIN: Final = "weft join with a token of weft invite --role service, at the root"
Given = str | os.PathLike[str] | Curve | None
"""The directory that `weft join` wrote, or the three keys themselves; None: `WEFT_KEYS`, else no keys."""


class Keyring:
    """A key pair, and the keys to expect at each host; at an unknown host those of the root and its possible successors."""

    def __init__(self, pair: Keys, hosts: Mapping[str, Sequence[str]], elsewhere: Sequence[str]) -> None:
        self._pair, self._hosts, self._elsewhere = pair, hosts, elsewhere
        self._plain_hosts: Callable[[str], bool] = is_loopback

    @classmethod
    def of(cls, given: Given = None) -> Self | None:
        """The given keys, or those of the environment; None: no keys. UserError `no-keys`, `open-keys`, `bad-keys`."""
        if isinstance(given, Curve):
            server, public, secret = (each.decode("ascii") for each in given)
            made = cls(Keys(public, secret), {}, (server,))
            made._plain_hosts = _nowhere
            return made
        word = os.environ.get(VARIABLE, "") if given is None else os.fspath(given)
        return cls.read(Path(word)) if word else None

    @classmethod
    def read(cls, directory: Path) -> Self:
        """The keys in a directory that `weft join` wrote; UserError `no-keys`, `open-keys`, `bad-keys`."""
        folder = directory if directory.name == FOLDER else directory / FOLDER
        pair = pair_of(_private_text(folder / SECRET))
        if pair is None:
            raise UserError("bad-keys", f"{folder / SECRET} holds no key pair", AGAIN)
        try:
            trust = msgspec.json.decode(_private_text(folder / KNOWN), type=Trust)
        except UNREADABLE as error:
            raise UserError("bad-keys", f"{folder / KNOWN} cannot be read: {error}", AGAIN) from None
        return cls(pair, _by_host(trust), _leaders(trust, pair))

    def servers(self, place: str) -> tuple[str, ...]:
        """The public keys to expect at `host:port`, the likeliest first; on loopback `PLAIN` goes before them."""
        host = host_of(place)
        keyed = tuple(self._hosts.get(host) or self._elsewhere)[:SERVERS_MAX]
        return (PLAIN, *keyed) if self._plain_hosts(host) else keyed

    def turn(self, place: str, number: int) -> str:
        """The key for attempt number `number`: if several may be right, each is tried in turn."""
        servers = self.servers(place)
        return servers[number % len(servers)] if servers else PLAIN

    def target(self, endpoint: str, server: str) -> Target:
        """The target to connect to, with our key pair; only a server with that key is accepted."""
        pair = self._pair
        curve = Curve(server.encode(), pair.public.encode(), pair.secret.encode()) if server else None
        return Target(endpoint, curve)


def _nowhere(_: str) -> bool:
    """No host may be without keys, loopback included: the caller has said which key the server has."""
    return False


def _by_host(trust: Trust) -> dict[str, tuple[str, ...]]:
    """The keys to expect at each host: of nodes known to be there, and of nodes that named the host when they joined."""
    found: dict[str, dict[str, None]] = {}
    placed = [(host_of(place), trust.bindings.get(uuid)) for place, uuid in trust.places.items()]
    for host, binding in (*placed, *((each.host, each) for each in trust.bindings.values())):
        if binding is not None and host:
            found.setdefault(host, {}).update(dict.fromkeys(reversed(binding.curve)))
    return {host: tuple(keys) for host, keys in found.items()}


def _leaders(trust: Trust, own: Keys) -> tuple[str, ...]:
    """The keys of the root, and of the nodes that may succeed it."""
    keys = [key for each in trust.bindings.values() if "collector" in each.roles for key in reversed(each.curve)]
    return tuple(key for key in dict.fromkeys(keys) if key != own.public)


def _private_text(path: Path) -> str:
    """The text of a file; UserError unless only its owner may access it and its directory."""
    try:
        modes = path.parent.stat().st_mode, path.stat().st_mode
        with path.open(encoding="utf-8") as file:
            text = file.read(KEY_FILE_BYTES_MAX)
    except FileNotFoundError:
        raise UserError("no-keys", f"{path} is not there", AGAIN) from None
    except (OSError, UnicodeDecodeError) as error:
        raise UserError("bad-keys", f"{path} cannot be read: {error}", f"chmod 600 {path}, as its owner") from None
    if any(mode & OTHERS for mode in modes):
        why = f"{path} can be read by others than its owner: whoever read it can pose as this program"
        raise UserError("open-keys", why, f"chmod 700 {path.parent}; chmod 600 {path}; and {AGAIN}, if somebody did")
    return text

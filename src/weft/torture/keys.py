"""Runs a closed fabric by the commands that a person types: machines join, get new keys, and are revoked (SEC-054)."""

import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Final, NamedTuple, TextIO, TypeVar

from weft.torture import limits
from weft.torture.clients import Machine
from weft.torture.files import FLEET_NAME
from weft.torture.plan import COLLECTORS, ROOT
from weft.torture.secrets import Secrets

FILE: Final = "node.toml"
"""What `weft join` writes into the state directory."""
LEADERS: Final = (ROOT, *COLLECTORS)
WEFT: Final = (sys.executable, "-m", "weft.cli.main")
LINE: Final = "weft1."  # how a token begins
HALF: Final = re.compile(r'^ *(public|secret)-key = "(.{40})"$', re.MULTILINE)

Result = TypeVar("Result")
Steps = Generator["subprocess.Popen[str] | None", str | None, Result]
"""A generator: yields a command to wait for and is sent its output, None if it failed; or yields None to wait a little."""


class Pair(NamedTuple):
    """The key pair of a machine."""

    public: str
    secret: str


def pair_of(state: Path) -> Pair | None:
    """The key pair on a machine's disk; None: there is none that can be read."""
    try:
        halves = dict(HALF.findall((state / "keys" / "node.key_secret").read_text("ascii")))
    except (OSError, UnicodeDecodeError):
        return None
    return Pair(halves["public"], halves["secret"]) if len(halves) == 2 else None


class Errand:
    """Commands that a person types one after the other while the run goes on."""

    def __init__(self, steps: Steps[None]) -> None:
        self.is_over = False
        self._steps, self._command = steps, next(steps, None)
        self._again_at = 0.0

    def go(self, now: float) -> None:
        """Go on if the last command has ended; if it failed, a little later."""
        command = self._command
        if self.is_over or (command is not None and command.poll() is None):
            return
        is_done = command is not None and command.returncode == 0
        self._again_at = self._again_at or now + limits.TYPE_S
        if not is_done and now < self._again_at:
            return
        self._again_at = 0.0
        output = command.communicate()[0] if command is not None else None
        try:
            self._command = self._steps.send(output if is_done else None)
        except StopIteration:
            self.is_over = True

    def end(self) -> None:
        """Type nothing more."""
        if not self.is_over and self._command is not None:
            self._command.kill()
            self._command.communicate()
        self.is_over = True


class Operator:
    """The person who runs a closed fabric. `hold` stops a machine's node until it is let go."""

    def __init__(
        self, place: Path, machines: dict[str, Machine], hold: Callable[[str], None], let_go: Callable[[str], None]
    ) -> None:
        self.place, self.machines = place, machines
        self.former: list[Pair] = []
        """Pairs that were renewed or revoked."""
        self.token = ""
        """A token by which a machine has joined."""
        self.secrets = Secrets()
        """All that machines have had, and all tokens."""
        self.done: Counter[str] = Counter()
        """How many machines have joined, how many keys were rotated or revoked, and how many secrets were looked for."""
        self.acts: dict[str, tuple[Callable[[str], None], Callable[[str], None]]] = {
            "rotate": (self.rotate, lambda _: None),
            "revoke": (self.revoke, self.restore),
        }
        """The functions that begin and end each fault of keys."""
        self._hold, self._let_go = hold, let_go
        self._errands: dict[tuple[str, str], Errand] = {}
        self._root = ROOT
        self._shut: set[str] = set()
        """Machines whose keys shall be revoked now."""
        self._log: TextIO = (place / "commands.log").open("a", encoding="utf-8")

    def typed(self, name: str, *words: str) -> "subprocess.Popen[str]":
        """Start a command on a machine."""
        space = self.machines[name].namespace
        prefix = ("ip", "netns", "exec", space) if space else ()
        environment = {**os.environ, "HOME": str(self.place), "XDG_STATE_HOME": str(self.place / "home")}
        shown = (f"{LINE}…" if word.startswith(LINE) else word for word in words)
        print(f"{name}$ weft {' '.join(shown)}", file=self._log, flush=True)
        return subprocess.Popen(
            [*prefix, *WEFT, *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._log, text=True, env=environment,
        )  # fmt: skip

    def found(self) -> None:
        """Make the keys of the root; all other machines join when it runs."""
        root = self.machines[ROOT]
        made = self.typed(ROOT, "init", "--name", ROOT, "--state", str(root.state), "--fleet", FLEET_NAME)
        made.communicate(timeout=limits.JOIN_S)
        assert made.returncode == 0, f"{self.place / 'commands.log'} says why weft init failed"

    def let_in(self, names: tuple[str, ...]) -> None:
        """Invite machines and let them join: the first one, then all others at once."""
        for name in names:
            self._hold(name)
        self._begin("in", names[0], self._come_in_first(names))

    def rotate(self, name: str) -> None:
        """Rotate the key of a node."""
        self._begin("rotate", name, self._renew(name))

    def revoke(self, name: str) -> None:
        """Revoke the keys of a machine, until `restore`."""
        self._shut.add(name)
        self._begin("revoke", name, self._shut_out(name))

    def restore(self, name: str) -> None:
        """Let a machine join again with new keys, if its keys were revoked."""
        self._shut.discard(name)

    def look(self, now: float) -> None:
        """Go on with all errands."""
        for key, errand in list(self._errands.items()):
            errand.go(now)
            if errand.is_over:
                del self._errands[key]

    def comes_in_again(self, name: str) -> bool:
        """Whether a machine can join by a token that another one has used."""
        state = str(self.machines[name].state)
        tried = self.typed(name, "join", self.token, "--name", name, "--state", state, "--stay")
        tried.communicate(timeout=limits.JOIN_S)
        return tried.returncode == 0

    def lost_keys(self) -> list[Pair]:
        """The last pairs that were rotated or revoked."""
        held = [pair_of(at.state) for at in self.machines.values()]
        return [pair for pair in self.former if pair not in held][-limits.FORMER_MAX :]

    @property
    def waits_for(self) -> str:
        """What is still to be done; empty: nothing."""
        return ", ".join(f"{kind} {name}" for kind, name in self._errands)

    def close(self) -> None:
        """Type nothing more."""
        for errand in self._errands.values():
            errand.end()
        self._log.close()

    def _begin(self, kind: str, name: str, steps: Steps[None]) -> None:
        if (kind, name) not in self._errands:
            self._errands[kind, name] = Errand(steps)

    # Commands

    def _at_root(self, *words: str) -> Steps[str | None]:
        """Run a command at the present root, trying the last known one first; None: it has worked nowhere."""
        for name in sorted(LEADERS, key=lambda name: name != self._root):
            output = yield self.typed(name, *words, "--port", str(self.machines[name].port))
            if output is not None:
                self._root = name
                return output
        return None

    def _come_in_first(self, names: tuple[str, ...]) -> Steps[None]:
        yield from self._come_in(names[0])
        for name in names[1:]:
            self._begin("in", name, self._come_in(name))

    def _come_in(self, name: str) -> Steps[None]:
        at, role = self.machines[name], "collector" if name in LEADERS else "sensor"
        where = ("--state", str(at.state), "--listen", at.host, "--port", str(at.port))
        while True:
            output = yield from self._at_root("invite", "--role", role, "--names", name, "--json")
            if output is None:
                continue
            token = str(json.loads(output)["token"])
            self.secrets.add_token(token)
            joined = yield self.typed(
                name, "join", token, str(self.place / f"{name}.toml"), "--name", name, *where, "--stay"
            )
            if joined is not None:
                self.token = token
                self.done["joined"] += 1
                return self._let_go(name)

    def _renew(self, name: str) -> Steps[None]:
        at = self.machines[name]
        before = pair_of(at.state)
        self.secrets.add_disk(at.state)
        output = yield self.typed(name, "key", "rotate", "--port", str(at.port))
        if output is not None and before is not None:
            self.former.append(before)
            self.done["renewed"] += 1

    def _shut_out(self, name: str) -> Steps[None]:
        before = pair_of(self.machines[name].state)
        for _ in range(limits.REVOKES_MAX):
            if (yield from self._at_root("key", "revoke", name)) is not None:
                break
        else:
            return
        self.done["revoked"] += 1
        if before is not None:
            self.former.append(before)
        while name in self._shut:
            yield None
        self._hold(name)
        yield from self._without_keys(name)
        yield from self._come_in(name)

    def _without_keys(self, name: str) -> Steps[None]:
        """Delete the machine's keys, so that it makes new ones: whoever stole the disk has the old pair."""
        keys = self.machines[name].state / "keys"
        self.secrets.add_disk(keys.parent)
        while keys.exists():
            with contextlib.suppress(OSError):
                shutil.rmtree(keys)
                return
            yield None


def leaks(operator: Operator | None) -> list[str]:
    """Where secrets of a closed fabric were written, when all of its processes have ended."""
    if operator is None:
        return []
    for at in operator.machines.values():
        operator.secrets.add_disk(at.state)
    operator.done["secrets"] = len(operator.secrets)
    return [f"sealed: {leak}" for leak in operator.secrets.leaks(operator.place)]

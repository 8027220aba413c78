"""The fabric: nine processes, their machines, cables and disks, and all possible faults."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any, Final

from weft.base.errors import UserError
from weft.shell.blocks import free_blocks
from weft.torture import limits
from weft.torture.cables import FAIR, Weather
from weft.torture.clients import Machine
from weft.torture.files import DOCUMENT, node_text, write_files
from weft.torture.keys import FILE, Operator
from weft.torture.moves import Mover
from weft.torture.plan import BELOW, CABLES, NODES, PIPELINE, STRANGER, Event, possible
from weft.torture.rewinds import CLONE, IDENTITY, Rewinder
from weft.torture.room import Net, host_of, is_inside, number_of, run

PORT: Final = 27_500
PORTS_FROM: Final = 31_000
PORTS: Final = DOCUMENT + 1  # a node's ten, its catalog and the beacons of that, its document
BALLOON: Final = "balloon"
PIECE: Final = 1 << 20


class Process:
    """One process of the fabric; it is restarted if it should run but does not."""

    def __init__(self, name: str, arguments: list[str], log: Path, prefix: tuple[str, ...], code: str) -> None:
        self.name, self.log, self.code = name, log, code
        self.words = [*prefix, sys.executable, "-m", "weft.cli.main", *arguments]
        self.process: subprocess.Popen[bytes] | None = None
        self.wanted = True
        self.starts_at = 0.0
        self.memory: list[tuple[float, int]] = []
        """Times, and the resident bytes then."""
        self.warms_up_s = 0.0
        """Seconds after each start in which its memory grows in any case."""
        self.warm: list[tuple[float, int]] = []
        """Its memory, without the times of warming up."""
        self._started_at = 0.0

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def start(self) -> None:
        """Start it again."""
        self._started_at = time.monotonic()
        paths = [self.code, os.environ.get("PYTHONPATH", "")] if self.code else [os.environ.get("PYTHONPATH", "")]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONPATH": os.pathsep.join(filter(None, paths))}
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, env=environment
            )

    def signal(self, number: int) -> bool:
        """Send a signal to the whole process group, because Spark has a JVM below it; False: it does not run."""
        if self.process is None or self.process.poll() is not None:
            return False
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, number)
        return True

    def kill(self) -> None:
        """Kill it, and wait until it has ended."""
        if self.signal(signal.SIGKILL) and self.process is not None:
            self.process.wait()

    def note_memory(self, now: float) -> None:
        """Note its resident memory, if it runs."""
        if size := self._resident():
            self.memory.append((now, size))
            if time.monotonic() - self._started_at >= self.warms_up_s:
                self.warm.append((now, size))

    def _resident(self) -> int:
        try:
            pages = Path(f"/proc/{self.process.pid if self.process else 0}/statm").read_text("ascii").split()[1]
        except (OSError, IndexError):
            return 0
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


def fill(balloon: Path) -> None:
    """Fill a node's disk with a file; OSError when it is full."""
    with balloon.open("wb", 0) as file:
        while file.write(b"\0" * PIECE) == PIECE:
            continue


class World:
    """Everything that runs. `play` begins a fault, `undo` ends it, `watch` restarts dead processes."""

    def __init__(  # tidy: what a run is asked for
        self,
        place: Path,
        seed: str,
        *,
        with_pipeline: bool,
        older: str = "",
        names: tuple[str, ...],
        closed: bool = False,
    ) -> None:
        self.place, self.lake = place, place / "lake"
        self.net = Net(len((*NODES, CLONE, STRANGER)), seed) if is_inside() else None
        self.machines = {name: at._replace(is_closed=closed) for name, at in self._machines().items()}
        self.operator = Operator(place, self.machines, self._begin_kill, self._let_go) if closed else None
        self.knocked_at: Counter[str] = Counter()
        """The machines that a stranger tries now."""
        self.story: list[str] = []
        self.unexplained: list[str] = []
        """Processes that ended by themselves without a fault that explains it."""
        self._began = time.monotonic()
        self._weathers: dict[str, list[Event]] = {}
        self._full, self._read_only = Counter[str](), Counter[str]()
        self._paused, self._may_end, self._held = Counter[str](), Counter[str](), Counter[str]()
        self._excused_until: dict[str, float] = {}
        self._is_healed = self._is_root_copied = False
        self._active = 0  # faults that have begun and are not over
        self._memory_at = 0.0
        self._acts = {
            "kill": (self._begin_kill, self._let_go),
            "restart-all": (self._begin_kill, self._let_go),
            "pause": (self._begin_pause, self._end_pause),
            "full-disk": (self._begin_full_disk, self._end_full_disk),
            "read-only": (self._begin_read_only, self._end_read_only),
            "clone": (self._begin_clone, self._end_clone),
            STRANGER: (lambda name: self.knocked_at.update([name]), lambda name: self.knocked_at.subtract([name])),
        }
        self.rewinder = Rewinder(place, self.machines, self._acts, (self._full, self._read_only))
        self._acts |= self.rewinder.acts
        if self.operator is not None:
            self._acts |= self.operator.acts
        if self.net is not None:
            self._acts |= Mover(place, self.machines, self.net, self._begin_kill, self._let_go).acts
        write_files(place, self.lake, self.machines)
        code = unpacked(older, place) if older else ""
        self.processes = {name: self._node(name, code if name in names else "", self._file_of(name)) for name in NODES}
        if with_pipeline:
            words = ["lake", "run", "--lake", str(self.lake), "--json"]
            self.processes[PIPELINE] = Process(PIPELINE, words, place / "pipeline.log", (), "")
            self.processes[PIPELINE].warms_up_s = limits.SPARK_WARM_S

    # Making

    def kinds(self) -> tuple[str, ...]:
        """The kinds of faults that can be played here."""
        return possible(has_room=self.net is not None, is_closed=self.operator is not None)

    @property
    def everybody(self) -> tuple[str, ...]:
        """All processes but the copy of one."""
        return tuple(name for name in self.processes if name != CLONE)

    def _machines(self) -> dict[str, Machine]:
        if self.net is None:
            blocks = free_blocks(len(NODES), PORTS_FROM, ports=PORTS)
            return {
                name: Machine(name, "127.0.0.1", block, "", self.place / "states" / name)
                for name, block in zip(NODES, blocks, strict=True)
            }
        machines = {}
        for number, name in enumerate((*NODES, CLONE, STRANGER), 1):
            state = self.place / "states" / name
            state.mkdir(parents=True, exist_ok=True)
            run("mount", "-t", "tmpfs", "-o", f"size={limits.STATE_MEGABYTES}m", "none", str(state))
            machines[name] = Machine(name, host_of(number), PORT, self.net.namespace(number), state)
        return machines

    def _file_of(self, name: str) -> Path:
        """The file of a node: the one written here, or the one that `weft join` has written if the node was invited."""
        is_invited = self.operator is not None and name in BELOW
        return self.machines[name].state / FILE if is_invited else self.place / f"{name}.toml"

    def _node(self, name: str, code: str, file: Path) -> Process:
        space = self.machines[name].namespace
        prefix = ("ip", "netns", "exec", space) if space else ()
        return Process(name, ["up", str(file)], self.place / f"{name}.log", prefix, code)

    def start(self) -> None:
        """Everything."""
        if self.net is not None:
            self.net.start()
        if self.operator is not None:
            self.operator.found()
            self.operator.let_in(BELOW)
        for name, process in self.processes.items():
            if not self._held.get(name):
                process.start()

    # Watching

    @property
    def now(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._began

    def say(self, text: str) -> None:
        """Add a line to the story."""
        self.story.append(f"{self.now:8.2f} s  {text}")

    def watch(self) -> None:
        """Restart processes that should run; record memory use while faults are played."""
        now = time.monotonic()
        if self.operator is not None:
            self.operator.look(now)
        for name, process in self.processes.items():
            if process.is_running or not process.wanted or self._held.get(name):
                continue
            if not process.starts_at:
                self._note_end(process)
                process.starts_at = now + limits.RESTART_S[0]
            elif now >= process.starts_at:
                process.starts_at = 0.0
                process.start()
        if now >= self._memory_at and not self._is_healed:
            self._memory_at = now + limits.MEMORY_EVERY_S
            for process in self.processes.values():
                process.note_memory(self.now)

    def _note_end(self, process: Process) -> None:
        """Note that a process has ended without being killed by a fault."""
        code = process.process.returncode if process.process is not None else None
        self.say(f"{process.name} ended by itself with {code}")
        is_excused = self._may_end.get(process.name) or time.monotonic() < self._excused_until.get(process.name, 0.0)
        if process.name != PIPELINE and not is_excused:  # the driver ends in order to be restarted
            self.unexplained.append(f"{process.name} ended by itself with {code} at {self.now:.1f} s")

    # Faults

    def play(self, event: Event) -> None:
        """Start a fault."""
        self.say(f"{event.kind} {' '.join(event.who)} {_detail(event)}".rstrip())
        self._active += 1
        if self._is_root_copied:
            self._end_clone("")
        if event.kind in CABLES:
            for name in event.who:
                self._weathers.setdefault(name, []).append(event)
                self._weather(name)
            return
        for name in event.who or self.everybody:
            self._acts[event.kind][0](name)

    def undo(self, event: Event) -> None:
        """End a fault."""
        self._active -= 1
        if event.kind in CABLES:
            for name in event.who:
                self._weathers[name].remove(event)
                self._weather(name)
        else:
            for name in event.who or self.everybody:
                self._acts[event.kind][1](name)
        if event.kind not in ("kill", "restart-all"):
            self.say(f"  over: {event.kind} {' '.join(event.who)}")

    def _hold(self, name: str) -> None:
        self._held[name] = self._held.get(name, 0) + 1

    def _let_go(self, name: str) -> None:
        self._held[name] -= 1
        self.processes[name].starts_at = time.monotonic()

    def _begin_kill(self, name: str) -> None:
        self._hold(name)
        self.processes[name].kill()

    def _begin_pause(self, name: str) -> None:
        self._paused[name] = self._paused.get(name, 0) + 1
        self.processes[name].signal(signal.SIGSTOP)

    def _end_pause(self, name: str) -> None:
        self._paused[name] -= 1
        if not self._paused[name]:
            self.processes[name].signal(signal.SIGCONT)

    def _no_more(self, name: str) -> None:
        """A fault that may end the node is over; the node is still excused for a while, as its end may be noticed late."""
        self._may_end[name] -= 1
        self._excused_until[name] = time.monotonic() + limits.EXCUSED_S

    def _begin_full_disk(self, name: str) -> None:
        """Fill the disk with a file, the balloon."""
        self._may_end[name] = self._may_end.get(name, 0) + 1
        self._full[name] += 1
        with contextlib.suppress(OSError):
            fill(self.machines[name].state / BALLOON)

    def _end_full_disk(self, name: str) -> None:
        self._full[name] -= 1
        self._give_room(name)
        self._no_more(name)

    def _give_room(self, name: str) -> None:
        """Delete the balloon if no fault needs it and the disk is writable: faults of one disk may overlap."""
        if not self._full[name] and not self._read_only[name]:
            (self.machines[name].state / BALLOON).unlink(missing_ok=True)

    def _begin_read_only(self, name: str) -> None:
        """Kill the node, then make its disk read-only, which is impossible while files are open for writing."""
        self._may_end[name] = self._may_end.get(name, 0) + 1
        self._read_only[name] += 1
        self.processes[name].kill()
        run("mount", "-o", "remount,ro", str(self.machines[name].state))
        self.processes[name].start()

    def _end_read_only(self, name: str) -> None:
        self._read_only[name] -= 1
        self.processes[name].kill()
        if not self._read_only[name]:
            run("mount", "-o", "remount,rw", str(self.machines[name].state))
        self._give_room(name)
        self._no_more(name)
        self.processes[name].starts_at = time.monotonic()

    def _begin_clone(self, name: str) -> None:
        """Start a second machine with a copy of the disk as it is now, unless that does not yet say which node it is of.

        A copy of a root runs only while nothing else happens: what it calls safe then goes with its disk.
        """
        is_root = self.rewinder.is_root(name)
        if (
            CLONE in self.processes
            or not (self.machines[name].state / IDENTITY).exists()
            or (is_root and self._active > 1)
        ):
            return
        self._is_root_copied = is_root
        clone = self.machines[CLONE]
        shutil.copytree(self.machines[name].state, clone.state, dirs_exist_ok=True, ignore=_no_sockets)
        text = node_text({**self.machines, name: clone._replace(name=name)}, name, self.place, self.lake)
        (self.place / "clone.toml").write_text(text, "utf-8")
        self.processes[CLONE] = process = self._node(CLONE, "", self.place / "clone.toml")
        self._may_end[CLONE] = 1
        process.wanted = False
        process.start()

    def _end_clone(self, _: str) -> None:
        self._is_root_copied = False
        process = self.processes.pop(CLONE, None)
        if process is not None:
            process.kill()
            for path in self.machines[CLONE].state.iterdir():
                shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _weather(self, name: str) -> None:
        """Set a cable to the combination of all faults that affect it now."""
        assert self.net is not None
        number = number_of(self.machines, name)
        outward, inward = weather_of(self._weathers[name])
        is_there = not any(event.kind == "cut" for event in self._weathers[name])
        self.net.carrier(number, is_there=is_there)
        self.net.weather(number, outward, inward)

    # Ending

    def heal(self) -> None:
        """Let every process run that should."""
        self._is_healed = True
        for process in self.processes.values():
            process.signal(signal.SIGCONT)
        self.say("healed")

    def stop(self, names: tuple[str, ...]) -> list[str]:
        """Stop these processes at once; returns those that did not end in time."""
        for name in names:
            self.processes[name].wanted = False
            self.processes[name].signal(signal.SIGTERM)
        ends_at = time.monotonic() + limits.STOP_S
        late = []
        for name in names:
            process = self.processes[name].process
            if process is None:
                continue
            try:
                process.wait(max(0.1, ends_at - time.monotonic()))
            except subprocess.TimeoutExpired:
                late.append(name)
                self.processes[name].kill()
        return late

    def close(self) -> None:
        """End everything that still runs, and keep the disks for inspection."""
        if self.operator is not None:
            self.operator.close()
        for process in self.processes.values():
            process.kill()
        if self.net is not None:
            self.net.end()


def frames(world: World) -> dict[str, Any]:
    """The counters of the switch."""
    return dict(world.net.switch.counts) if world.net is not None else {}


def keep_states(world: World) -> None:
    """Copy the disks from the room, which ends with this process, to the directory of the run."""
    if world.net is None:
        return
    for name in NODES:
        kept = world.place / "kept" / name
        shutil.copytree(world.machines[name].state, kept, dirs_exist_ok=True, ignore=_no_sockets)


def weather_of(events: list[Event]) -> tuple[Weather, Weather]:
    """Both directions of a cable, outward first, under several faults at once."""
    outward = inward = FAIR
    for event in events:
        if event.kind in ("cut", "blackhole"):
            outward, inward = outward._replace(is_cut=True), inward._replace(is_cut=True)
        elif event.kind == "one-way":
            outward = outward._replace(is_cut=True)
        elif event.kind == "delay":
            outward = outward._replace(delay_s=event.amount)
        elif event.kind == "slow":
            slow = limits.SLOW_BYTES_PER_S
            outward, inward = outward._replace(bytes_per_s=slow), inward._replace(bytes_per_s=slow)
        elif event.kind == "flip":
            one_in = limits.FLIP_ONE_IN
            outward, inward = outward._replace(flip_one_in=one_in), inward._replace(flip_one_in=one_in)
        elif event.kind == "reset":
            one_in = limits.RESET_ONE_IN
            outward, inward = outward._replace(reset_one_in=one_in), inward._replace(reset_one_in=one_in)
        elif event.kind == "rough":
            one_in = limits.ROUGH_ONE_IN
            outward, inward = outward._replace(rough_one_in=one_in), inward._replace(rough_one_in=one_in)
    return outward, inward


def _detail(event: Event) -> str:
    amount = f" by {event.amount:g} s" if event.amount else ""
    return f"for {event.span:g} s{amount}"


def _no_sockets(directory: str, names: list[str]) -> list[str]:
    return [name for name in names if Path(directory, name).is_socket() or name == BALLOON]


def unpacked(wheel: str, place: Path) -> str:
    """The directory that a wheel's code is in, for PYTHONPATH."""
    code = place / "older"
    try:
        with zipfile.ZipFile(wheel) as file:
            file.extractall(code)
    except (OSError, zipfile.BadZipFile) as error:
        raise UserError("usage", f"{wheel} is no wheel: {error}", "weft torture --with dist/weft-….whl") from None
    return str(code)

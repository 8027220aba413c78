"""Carries out the actions of a plan (FLT). An action without a target does nothing."""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

import msgspec

from weft.base.chance import Chance
from weft.base.now import SECOND
from weft.cores.carrier import messages as carrier
from weft.cores.drain import messages as drain
from weft.cores.measurement import messages as measurement
from weft.cores.store import messages as store
from weft.cores.topology import messages as topology
from weft.node.fleetkeys import canonical
from weft.sim.catalog import ServiceProgram, name_of
from weft.sim.clones import CloneProgram
from weft.sim.disks import copy, edit, harm, repair, replace
from weft.sim.fabric import Fabric, address
from weft.sim.garbage import make
from weft.sim.machine import Machine
from weft.sim.plan import Action
from weft.sim.strangers import tell
from weft.wire.catalog import beats, commands
from weft.wire.catalog.messages import DISCONNECT, HEARTBEAT, REQUEST, Beat, Message

STOP_NS: Final = SECOND // 5  # time between two orders to stop
ACKS: Final = ("", "quorum", "local")
NOTHING: Final = b"\xc0"
STRANGER: Final = b"\x7fstranger"
ADMINISTRATOR: Final = b"\x7fadmin"
"""The peer at a broker's socket in the state directory."""
TAP_RATE: Final = 10
"""Messages that a tap copies in a second at most; the others are counted."""
GHOST: Final = "ghost"
"""An instance that is never registered."""


def perform(fabric: Fabric, action: Action) -> None:
    """Let the action happen now."""
    fabric.recorder.counts[f"did {action.do}"] += 1
    fabric.recorder.acted(action)
    ACTIONS[action.do](fabric, action)


def _start(fabric: Fabric, action: Action) -> None:
    """`node` starts, if it does not run."""
    machine = fabric.machines[action.node]
    if machine.node is None:
        machine.start()


def _crash(fabric: Fabric, action: Action) -> None:
    """`node` ends; `how`: kept, torn, lost, old; `number` 1: its kernel lives on; `second` 1: inside its next write.

    `other` `below`: not if it leads, since the disk of a root holds what it has called safe.
    """
    machine = fabric.machines[action.node]
    if action.other == "below" and machine.level == "root":
        return
    end = machine.doom if action.second else machine.crash
    end(action.how, is_loud=bool(action.number))


def _move(fabric: Fabric, action: Action) -> None:
    """`node` ends, and will start at another address; `number` 1: its kernel lives on."""
    machine = fabric.machines[action.node]
    machine.crash("kept", is_loud=bool(action.number))
    first = address(machine.number)
    machine.address = address(machine.number, is_other=True) if machine.address == first else first
    fabric.addresses[machine.name] = machine.address
    fabric.recorder.meet("a machine at another address")


def _bury(fabric: Fabric, action: Action) -> None:
    """`node` dies for good; `how` `root`: whoever is the root of its fleet; `second` 1: its replacement is timed."""
    machine = fabric.machines[action.node]
    if action.how == "root":
        machine = next(
            (each for each in fabric.fleet_of(machine.plan.fleet) if each.level == "root" and each.node), machine
        )
    if machine.is_gone or fabric.fleetbook is None:
        return
    if action.second:
        fabric.fleetbook.buried(machine)
    machine.bury(is_loud=bool(action.number))


def _leads(machine: Machine) -> bool:
    """Whether it would get a write: it is the root, or it acts as root and must refuse."""
    core: Any = machine.node.cores["topology"] if machine.node is not None else None
    return core is not None and core.context.leads


def _write(fabric: Fabric, action: Action) -> None:
    """Somebody writes a rate of `number` ms for metric `how` of a group, at the leader of the fleet of `node`.

    `other`: only at that node, and only if it leads. `second`: 1 with, 2 without a majority, else as the settings say.
    """
    value = canonical({"detail": "CPU", "rate": action.number / 1e3})
    for machine in fabric.fleet_of(fabric.machines[action.node].plan.fleet):
        if fabric.fleetbook is not None and _leads(machine) and action.other in ("", machine.name):
            fabric.fleetbook.write(machine, f"/CONFIG/{action.how}", value, ACKS[action.second])


def _stop(fabric: Fabric, action: Action) -> None:
    """`node` is told to stop, and does so in order."""
    machine = fabric.machines[action.node]
    if machine.node is None:
        return
    orders = (
        ("measurement", measurement.Stop()),
        ("drain", drain.Stop()),
        ("carrier", carrier.Stop()),
        ("topology", topology.Stop()),
    )
    starts = machine.starts
    for number, (core, order) in enumerate(orders):
        fabric.world.call_at(fabric.world.at + number * STOP_NS, machine.answerer(core), order)
    fabric.world.call_at(fabric.world.at + len(orders) * STOP_NS, partial(_stopped, fabric, machine), starts)


def _stopped(fabric: Fabric, machine: Machine, starts: int) -> None:
    if machine.starts != starts or machine.node is None:
        return
    if machine.is_paused:
        fabric.world.call_at(fabric.world.at + SECOND, partial(_stopped, fabric, machine), starts)
        return
    machine.crash("kept", is_loud=True)
    fabric.recorder.meet("an orderly stop")
    if not fabric.is_stormy:
        machine.start()  # the faults ended before it had stopped


def _pause(fabric: Fabric, action: Action) -> None:
    """`node` is paused (SIGSTOP, a suspended machine)."""
    fabric.machines[action.node].pause()


def _resume(fabric: Fabric, action: Action) -> None:
    """`node` continues."""
    fabric.machines[action.node].resume()


def _step(fabric: Fabric, action: Action) -> None:
    """The wall clock of `node` is set `number` ns forward or back."""
    fabric.machines[action.node].clocks.step(action.number)


def _drift(fabric: Fabric, action: Action) -> None:
    """The monotonic clock of `node` runs `number` ppm fast from now on."""
    fabric.machines[action.node].clocks.drift(fabric.world.at, action.number)


def _ways(action: Action) -> list[tuple[str, str]]:
    """The directions that an action on a cable concerns; `how` `one`: only from `node` to `other`."""
    there = [(action.node, action.other)]
    return there if action.how == "one" else [*there, (action.other, action.node)]


def _cut(fabric: Fabric, action: Action) -> None:
    """Nothing passes between `node` and `other`; `how` `one`: nothing from `node` to `other`."""
    for here, there in _ways(action):
        fabric.cut(here, there)


def _mend(fabric: Fabric, action: Action) -> None:
    """One of those cuts is taken back."""
    for here, there in _ways(action):
        fabric.mend(here, there)


def _slow(fabric: Fabric, action: Action) -> None:
    """Between `node` and `other` a message takes `number` ns, with a spread of `second`; as planned if both are 0."""
    for here, there in _ways(action):
        fabric.slow(here, there, action.number, action.second)


def _flip(fabric: Fabric, action: Action) -> None:
    """Between `node` and `other` a bit of one message in `number` is flipped; of none if that is 0."""
    for here, there in _ways(action):
        fabric.flip(here, there, action.number)


def _give_up(fabric: Fabric, action: Action) -> None:
    """TCP breaks the connections of `node` on channel `how`, else to its parent; the others notice after `number` ns."""
    fabric.recorder.note(action.node, 0, "info", "gave-up", [action.how or "up"])
    fabric.streams.give_up(action.node, action.number, action.how or "up")


def _image(fabric: Fabric, action: Action) -> None:
    """The disk of `node` is copied, for a crash of kind `old`."""
    machine = fabric.machines[action.node]
    machine.image = machine.disk.image()


def _fill(fabric: Fabric, action: Action) -> None:
    """The journal of `node` may only use `number` bytes; as planned, if that is 0."""
    machine = fabric.machines[action.node]
    machine.disk.budget = action.number or machine.plan.journal_bytes


def _garbage(fabric: Fabric, action: Action) -> None:
    """`node` gets bytes of kind `how` on a channel, `number`: 0 up, 1 down, 2 beacon."""
    machine = fabric.machines[action.node]
    channel = ("up", "down", "beacon")[action.number]
    peer = {"up": b"", "down": STRANGER, "beacon": b"10.9.9.9"}[channel]
    frames = make(action.how, Chance(f"{fabric.plan.seed}/garbage/{action.at}/{action.node}"))
    machine.inject(channel, peer, frames)


def _lie(fabric: Fabric, action: Action) -> None:
    """`node` gets the false message `how` from somebody without a proof: see `strangers.LIES`."""
    if tell(fabric.machines[action.node], action.how):
        fabric.recorder.meet(f"told that {action.how}")


def _intrude(fabric: Fabric, action: Action) -> None:
    """An intruder of kind `how` tries each port of `node`: see `intruders.KINDS`."""
    fabric.machines[action.node].intrude(action.how)


def _rotate_key(fabric: Fabric, action: Action) -> None:
    """Somebody orders another key for `node`."""
    fabric.locksmith.rotate(fabric.machines[action.node])


def _steal_machine(fabric: Fabric, action: Action) -> None:
    """The machine `node` is stolen: its key is revoked, and it runs on until the faults end."""
    fabric.locksmith.steal(fabric.machines[action.node])


def _replace_machine(fabric: Fabric, action: Action) -> None:
    """The machine `node` gets an empty disk, its key is revoked, and it joins again."""
    fabric.locksmith.replace(fabric.machines[action.node])


def _impostor(fabric: Fabric, action: Action) -> None:
    """A stranger listens at the address of `node`, which does not run, until it starts."""
    fabric.admit(fabric.machines[action.node])


def _harm(fabric: Fabric, action: Action) -> None:
    """Of the journal of `node`, which does not run, a segment is harmed: `how` is one of `disk.HARMS`.

    `number` 1: nobody repairs it, so that it does not start if it is not whole.
    """
    machine = fabric.machines[action.node]
    harm(machine, action.how, Chance(f"{fabric.plan.seed}/harm/{action.at}/{action.node}"))
    if not action.number:
        repair(machine)


def _repair(fabric: Fabric, action: Action) -> None:
    """The journal of `node`, if it is refused, is repaired; `how` `replaced`: the node gets an empty disk instead."""
    mend = replace if action.how == "replaced" else repair
    mend(fabric.machines[action.node])


def _new_file(fabric: Fabric, action: Action) -> None:
    """The file of `node` sets a flush of `second` ns, and a rate of `number` ns for its metrics.

    `how` `fewer`: only the first metric stays in it.
    """
    machine = fabric.machines[action.node]
    metrics = machine.plan.metrics
    if action.how == "fewer":
        metrics = metrics[:1]
    changed = tuple(msgspec.structs.replace(metric, rate_ns=action.number) for metric in metrics)
    edit(machine, metrics=changed, flush_ns=action.second)


def _clone(fabric: Fabric, action: Action) -> None:
    """A copy of the disk of `node`, as it is now, runs as the second machine `other`."""
    machine, twin = fabric.machines[action.node], fabric.machines[action.other]
    if twin.node is None and not twin.starts:
        copy(machine, twin)
        twin.start()


def _end_program(fabric: Fabric, action: Action) -> None:
    """Program `how` of `node` dies, and is not started when the power is back."""
    program = fabric.machines[action.node].programs[action.how]
    program.end()
    program.has_ended = True


def _run_program(fabric: Fabric, action: Action) -> None:
    """Program `how` of `node` is started again, if the machine runs."""
    machine = fabric.machines[action.node]
    if machine.node is not None:
        machine.programs[action.how].begin()


def _hang_program(fabric: Fabric, action: Action) -> None:
    """Program `how` of `node` is paused."""
    fabric.machines[action.node].programs[action.how].hang()


def _wake_program(fabric: Fabric, action: Action) -> None:
    """Program `how` of `node` is resumed."""
    fabric.machines[action.node].programs[action.how].go_on()


def _found(fabric: Fabric, action: Action) -> None:
    """Somebody founds the store at `node`."""
    fabric.machines[action.node].obey("store", store.Found(0, NOTHING))


def _ask(fabric: Fabric, action: Action) -> None:
    """A client at `node` asks its store: see `Asker.obey`."""
    machine = fabric.machines[action.node]
    if machine.node is not None:
        machine.store_clients.asker.obey(action)


def _stall(fabric: Fabric, action: Action) -> None:
    """The watchers at `node` read nothing for `number` ns."""
    machine = fabric.machines[action.node]
    if machine.node is not None:
        machine.store_clients.stall(action.number)


def _hang_up(fabric: Fabric, action: Action) -> None:
    """The clients at `node` end their connections and reconnect."""
    machine = fabric.machines[action.node]
    if machine.node is not None:
        for client in machine.store_clients:
            machine.store_clients.drop(client)


def _drop_node(fabric: Fabric, action: Action) -> None:
    """Somebody declares at `node` that `other` will not come back."""
    machine = fabric.machines[action.node]
    if machine.node is not None:
        machine.obey("store", store.DropNode(0, action.other))


def _start_host(fabric: Fabric, action: Action) -> None:
    """The program on the host `node` starts, if it does not run."""
    fabric.hosts[action.node].start()


def _end_host(fabric: Fabric, action: Action) -> None:
    """The program on the host `node` ends; `how` `goodbye`: in order; `number` 1: its kernel lives on; `second` 1: for good."""
    host = fabric.hosts[action.node]
    host.is_gone = host.is_gone or bool(action.second)
    if action.how == "goodbye":
        host.stop()
    else:
        host.kill(is_loud=bool(action.number))


def _pause_host(fabric: Fabric, action: Action) -> None:
    """The program on the host `node` is paused."""
    fabric.hosts[action.node].pause()


def _resume_host(fabric: Fabric, action: Action) -> None:
    """The program on the host `node` is resumed."""
    fabric.hosts[action.node].resume()


def _ail_host(fabric: Fabric, action: Action) -> None:
    """The port of the host `node` refuses every check from now on; `number` 0: it accepts them again."""
    host = fabric.hosts[action.node]
    host.is_ill = bool(action.number)
    host.note("info", "ill", [host.is_ill])


def _tap(fabric: Fabric, action: Action) -> None:
    """Somebody at the broker `node` taps the services with the name of the one on `other`, for `number` s.

    `how`: the id of the tap; `second` 1: the tap is ended instead.
    """
    broker = fabric.machines[action.node]
    wanted = {"service": name_of(action.other), "id": action.how, "seconds": action.number, "rate": TAP_RATE}
    body = {"stop": action.how} if action.second else wanted
    if broker.node is not None:
        request = Message(REQUEST, b"1", (b"dbp.tap", msgspec.json.encode(body)))
        broker.hear("catalog", ADMINISTRATOR, commands.encode(request), None)


def _change_service(fabric: Fabric, action: Action) -> None:
    """The service on the host `node` changes its own record to `number`."""
    host = fabric.hosts[action.node]
    if isinstance(host.program, ServiceProgram):
        host.order(partial(host.program.change, action.number))


def _write_clone(fabric: Fabric, action: Action) -> None:
    """The client on the host `node` writes pair `number`: `second`, or deletes it if that is 0."""
    host = fabric.hosts[action.node]
    if isinstance(host.program, CloneProgram):
        value = b"%d" % action.second if action.second else b""
        host.order(partial(host.program.write, f"k{action.number}", value))


def _meddle(fabric: Fabric, action: Action) -> None:
    """The service on the host `node` tries to change the record of the one on `other`."""
    host, other = fabric.hosts[action.node], fabric.hosts[action.other]
    if isinstance(host.program, ServiceProgram):
        host.order(partial(host.program.meddle, other.name))


def _deregister(fabric: Fabric, action: Action) -> None:
    """An administrator removes the service on the host `other` from the list of the broker `node`."""
    broker, name = fabric.machines[action.node], name_of(action.other)
    if broker.node is not None:
        request = Message(REQUEST, b"1", (b"dbp.deregister", name.encode(), action.other.encode()))
        broker.hear("catalog", ADMINISTRATOR, commands.encode(request), None)


def _forge(fabric: Fabric, action: Action) -> None:
    """The broker `node` is sent a beat in the name, and with the address, of the host `other`; `how`: goodbye or ghost."""
    broker, host = fabric.machines[action.node], fabric.hosts[action.other]
    if broker.node is None:
        return
    word, name = (DISCONNECT, host.name) if action.how == "goodbye" else (HEARTBEAT, GHOST)
    beat = Beat(word, name_of(host.name), 1.0, name, action.number)
    fabric.post(host.name, f"{host.address}:1".encode(), broker, beats.encode(beat), "catalog-beats")


def _edit(fabric: Fabric, action: Action) -> None:
    """Somebody at `node` edits a document: see `Editor.obey`."""
    machine = fabric.machines[action.node]
    if machine.node is not None:
        machine.editor.obey(action)


ACTIONS: Final[dict[str, Callable[[Fabric, Action], None]]] = {
    "start": _start,
    "crash": _crash,
    "move": _move,
    "bury": _bury,
    "write": _write,
    "stop": _stop,
    "pause": _pause,
    "resume": _resume,
    "step": _step,
    "drift": _drift,
    "cut": _cut,
    "mend": _mend,
    "slow": _slow,
    "flip": _flip,
    "give-up": _give_up,
    "image": _image,
    "fill": _fill,
    "garbage": _garbage,
    "lie": _lie,
    "impostor": _impostor,
    "intrude": _intrude,
    "rotate-key": _rotate_key,
    "steal-machine": _steal_machine,
    "replace-machine": _replace_machine,
    "harm": _harm,
    "repair": _repair,
    "new-file": _new_file,
    "clone": _clone,
    "end-program": _end_program,
    "run-program": _run_program,
    "hang-program": _hang_program,
    "wake-program": _wake_program,
    "found": _found,
    "ask": _ask,
    "stall": _stall,
    "hang-up": _hang_up,
    "drop-node": _drop_node,
    "start-host": _start_host,
    "end-host": _end_host,
    "pause-host": _pause_host,
    "resume-host": _resume_host,
    "ail-host": _ail_host,
    "tap": _tap,
    "change-service": _change_service,
    "write-clone": _write_clone,
    "meddle": _meddle,
    "deregister": _deregister,
    "forge": _forge,
    "edit": _edit,
}
"""Every action a plan may name."""

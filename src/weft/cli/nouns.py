"""The nouns of `weft`: parse, call, print; each is imported only when it is asked for."""

import sys
from typing import Any, Final

from cyclopts import App

from weft import __version__
from weft.cli.kit.exits import DONE

app = App(
    name="weft",
    help="Weave a fleet of machines into one fabric, and query all of it.",
    version=__version__,
    help_epilogue="Exit status, of all commands: 0 done, 1 not so (not found, a condition failed, a check found something), 2 wrong usage, 3 nobody answers, 4 refused, 5 unconfirmed or void, 70 a fault of Weft, 74 disk failed, 75 try again later, 76 lease lost, 77 name taken, 78 no Java.",
)

ROOMS: Final[dict[str, tuple[str, str]]] = {
    "up": ("weft.cli.up:up", "Run one node here."),
    "reload": ("weft.cli.reload:reload", "Make a running node use its changed file."),
    "invite": ("weft.cli.invite:app", "Let another machine into the fabric."),
    "join": ("weft.cli.join:join", "Bring this machine into a fabric, with the line of weft invite."),
    "key": ("weft.cli.key:app", "Show, rotate and revoke the keys of nodes."),
    "init": ("weft.cli.join:init", "Make the keys of a root that other machines shall reach from its first start."),
    "demo": ("weft.cli.demos.app:app", "Run a whole fabric on this machine; or programs that show what chains do."),
    "chain": ("weft.cli.chain:app", "Show the links of a node's chains; send a message, watch messages pass."),
    "status": ("weft.cli.status:status", "Show the whole fleet: who is where, runs what, and how each node is."),
    "trace": ("weft.cli.trace:trace", "Follow one record from where it was made to the lake."),
    "quarantine": ("weft.cli.quarantine:quarantine", "Show the last messages that a node has refused."),
    "debug": ("weft.cli.debug:app", "Print what a node received and did lately, to find a fault."),
    "stop": ("weft.cli.stop:stop", "Make a group of nodes, or all of them, stop measuring and wait."),
    "fleet": ("weft.cli.fleet_root:app", "Repair a fleet that follows a wrong root."),
    "metrics": ("weft.cli.metrics:metrics", "What can be measured, and in which unit."),
    "top": ("weft.cli.top:top", "Watch the fleet in the terminal: who is in trouble, what is missing."),
    "console": ("weft.cli.console:app", "Print the address of a node's console, the fleet in a browser; log in to it."),
    "alerts": ("weft.cli.alerts:alerts", "Show firing alerts, and sinks that could not be notified."),
    "service": ("weft.cli.service:app", "Run nodes and the lake by systemd: install, ls, restart, remove."),
    "config": ("weft.cli.config:app", "Write a fleet's file, change a running fleet."),
    "get": ("weft.cli.store_data:get", "Print a value of the shared store."),
    "set": ("weft.cli.store_data:set_value", "Write a value into the shared store."),
    "del": ("weft.cli.store_data:delete", "Delete a value, or a tree of them, from the shared store."),
    "ls": ("weft.cli.store_data:ls", "List the entries below a path of the shared store."),
    "watch": ("weft.cli.store_data:watch", "Print changes of the shared store as they come."),
    "store": ("weft.cli.store:app", "Found the shared store; show its state, conflicts and lost nodes."),
    "catalog": ("weft.cli.catalog:app", "Which services exist, where, and whether they are alive; last values, logs."),
    "doc": ("weft.cli.doc:app", "Edit one document with others, without a server: edit, watch, replay, verify."),
    "sql": ("weft.cli.sql:sql", "Query the tables of a lake in SQL, without Java."),
    "lake": ("weft.cli.lake:app", "Show what a lake contains, and run the jobs that make its tables."),
    "annexes": ("weft.cli.annexes:annexes", "List protocols that are installed beside Weft; print the page of one."),
    "doctor": (
        "weft.cli.doctor:doctor",
        "Check whether this machine can run a node, or the jobs of a lake, and say what to do if not.",
    ),
    "completion": ("weft.cli.completion:completion", "Teach bash, zsh or fish the commands of Weft."),
    "man": ("weft.cli.manual:man", "Print the page of the manual."),
    "upgrade": ("weft.cli.upgrade:app", "Find what stands in the way of an upgrade of Weft."),
    "drain": ("weft.cli.drain:drain", "Drain the journal of a stopped node into a lake."),
    "journal": ("weft.cli.journal:app", "Show, verify, repair and copy the journal of a node."),
    "sim": ("weft.cli.sim:app", "Simulate a whole fabric under faults, and explain what happened."),
    "torture": (
        "weft.cli.torture:torture",
        "Run a real fabric here under random faults, and judge whether it kept its promises.",
    ),
}
for name, (where, what) in ROOMS.items():
    # The help of one command shows its whole docstring, the list of commands only these words.
    app.command(where, name=name, help=None if [name] == sys.argv[1:2] else what)


def know_annexes(words: list[str]) -> None:
    """Add the nouns of annexes, unless the command is one of Weft's own."""
    if words[:1] and words[0] in ROOMS:
        return
    from weft.node.installed import names  # loaded only here, because most commands do not need it

    if not names():
        return
    from weft.cli.annexes import commands  # imports all parts of a node

    for name, where, what in commands(words[0] if words else "", ROOMS):
        app.command(where, name=name, help=None if [name] == words[:1] else what)


LISTING: Final[tuple[list[str], ...]] = ([], ["--help"], ["-h"])
"""Words that request the list of all commands."""


def run() -> Any:
    """Run the command of the arguments; its exit status."""
    if sys.argv[1:] == ["--version"]:
        print(__version__)  # cyclopts would print the same, but load its renderer of markup first
        return DONE
    know_annexes(sys.argv[1:])
    if sys.argv[1:] in LISTING:
        app.help_format = "plaintext"  # the list has no markup, and parsing markup would take a quarter of its time
    return app(exit_on_error=False, print_error=False)

"""What the checkers of messages call broken, and what not: histories made by hand (CHK-004)."""

import pytest

from tests.checks.standard import QUIET, Line, facts_of
from weft.checks import Checker, Violation, judge
from weft.checks.mail import MailComplete, MailOnce, MailOrder, MailWall, OfferedOnce, OneStatus, ReadersServed

TYPES: Line = ("", "info", "mail-types", [["t", True, True], ["u", False, False], ["tea", True, False]])


def lost(node: str) -> Line:
    return node, "info", "disk", ["lost", [], []]


def old(node: str) -> Line:
    return node, "info", "disk", ["old", [], []]


def starts(node: str, parent: str = "") -> Line:
    return node, "info", "start", ["sensor", parent, 0]


def send(text: str, kind: str = "t", *, is_promised: bool = True) -> Line:
    return "a", "invoke", "send", ["p", "c s", 1, kind, text, is_promised]


def mail(node: str, text: str, number: int = 1, *, box: str = "out", kind: str = "t") -> Line:
    return node, "durable", "mail", [box, "a/1", number, kind, text, None]


def posted(tag: int = 1) -> Line:
    """The program c of node a has sent it, under that tag."""
    return "a", "durable", "mail", ["out", "a/1", 1, "t", "x", ["c", tag]]


def at_root(text: str, number: int = 1, origin: str = "a/1", kind: str = "t") -> Line:
    return "r", "durable", "mail", ["journal", origin, number, kind, text, None]


def met(node: str, *numbers: int, origin: str = "a/1") -> Line:
    return node, "durable", "met", [origin, list(numbers)]


def says(number: int, sequence: int, era: int = 1) -> Line:
    """A message leaves a for its parent."""
    return "a", "sent", "mail", [era, number, "a/1", sequence]


def hack(upto: int, era: int = 1) -> Line:
    return "r", "sent", "hack", ["a", era, upto, 0]


def hello(first: int) -> Line:
    return "a", "sent", "hello", ["r", 1, first]


def status(text: str = "x", why: str = "spooled", *, tag: int = 1, session: str = "c s", is_ok: bool = True) -> Line:
    return "a", "ok", "status", ["p", session, tag, is_ok, why, text]


def offered(number: int = 1, kind: str = "t", *, node: str = "a", is_again: bool = False) -> Line:
    return node, "ok", "offered", ["p", "c", "r1", "a/1", number, kind, is_again]


def dropped(first: int, last: int) -> Line:
    return "a", "event", "mail-dropped", ["a/1", first, last]


def reader(event: str, pattern: str = "t", name: str = "log", node: str = "r") -> Line:
    return node, {"standing": "ok", "forgotten": "event"}[event], event, [name, pattern]


def confirmed(number: int, name: str = "log") -> Line:
    return "r", "ok", "confirmed", [name, "a/1", number]


def given_up(first: int, last: int) -> Line:
    return "r", "event", "given-up", ["log", "a/1", first, last]


SPOOLED = (send("x"), posted(), status())
CALLED = (TYPES, starts("r"), starts("c", "r"), starts("a", "c"), *SPOOLED)
REMEMBERED = (TYPES, reader("standing"))
CAME = (mail("r", "x", box="in"), met("r", 1))

RIGHT: dict[str, tuple[type[Checker], tuple[Line, ...]]] = {
    "acknowledged behind its wall": (MailWall, (says(1, 1), met("r", 1), hack(1))),
    "not acknowledged so far": (MailWall, (says(1, 1), says(2, 2), met("r", 1), hack(1))),
    "acknowledged again": (MailWall, (says(1, 1), met("r", 1), hack(1), lost("r"), hack(1))),
    "not needed any more": (MailWall, (says(1, 1), says(2, 2), hello(2), met("r", 2), hack(2))),
    "of another era": (MailWall, (says(1, 1, era=2), hack(1))),
    "an old disk may have it": (MailWall, (says(1, 1), met("r", 1), old("r"), hack(1))),
    "spooled behind its wall": (MailWall, SPOOLED),
    "refused, and nowhere": (MailWall, (status(why="spooled", is_ok=False), status(why="local"))),
    "spooled on a disk that went back": (MailWall, (posted(), old("a"), status())),
    "on the way, and at the root": (MailOnce, (send("x"), mail("a", "x"), mail("c", "x"), at_root("x"))),
    "written behind by who held it": (MailOnce, (send("x"), mail("a", "x"), at_root("x+c"))),
    "twice on the way": (MailOnce, (send("x"), mail("c", "x"), mail("c", "x"))),
    "at two roots": (MailOnce, (send("x"), at_root("x"), lost("r"), at_root("x"))),
    "sent again by a disk that went back": (MailOnce, (send("x"), at_root("x"), old("a"), at_root("x", 2))),
    "in order": (MailOrder, (TYPES, at_root("x", 1), at_root("y", 3), at_root("z", 1, "a/2"))),
    "two nodes": (MailOrder, (TYPES, at_root("x", 2), at_root("y", 1, "b/1"))),
    "two types": (MailOrder, (TYPES, at_root("x", 2), at_root("y", 1, kind="u"))),
    "two of a type without order": (MailOrder, (TYPES, at_root("x", 2, kind="tea"), at_root("y", 1, kind="tea"))),
    "out of order on the way": (MailOrder, (TYPES, mail("r", "x", 2), mail("r", "y", 1))),
    "a disk went back": (MailOrder, (TYPES, at_root("x", 2), lost("b"), at_root("y", 1))),
    "one status each": (OneStatus, (status(), status(tag=2), status(session="c t"), ("a", "info", "program", ["p", []]))),
    "handed once each": (OfferedOnce, (TYPES, offered(1), offered(2), offered(1, node="b"))),
    "again, and told so": (OfferedOnce, (TYPES, offered(), offered(is_again=True))),
    "again on a new disk": (OfferedOnce, (TYPES, offered(), lost("a"), offered())),
    "again, of a type that nobody knows": (OfferedOnce, (TYPES, offered(kind="mem"), offered(kind="mem"))),
    "came to the root": (MailComplete, (*CALLED, at_root("x+c"), QUIET)),
    "nobody was promised": (MailComplete, (TYPES, send("x", is_promised=False), status(), QUIET)),
    "of a type that may go": (MailComplete, (TYPES, send("x", "u"), status(), QUIET)),
    "refused": (MailComplete, (TYPES, send("x"), status(is_ok=False), QUIET)),
    "another final status": (MailComplete, (TYPES, send("x"), status(why="deleted"), QUIET)),
    "given up by a full spool": (MailComplete, (*CALLED, dropped(1, 1), QUIET)),
    "given up, the last of several": (MailComplete, (TYPES, send("x"), mail("a", "x", 3), status(), dropped(1, 3), QUIET)),
    "gone with the disk of its node": (MailComplete, (*CALLED, lost("a"), QUIET)),
    "gone with its disk, of which nobody says how it began": (ReadersServed, (TYPES, *CAME, QUIET)),
    "gone with a disk above": (MailComplete, (*CALLED, old("c"), QUIET)),
    "confirmed": (ReadersServed, (*REMEMBERED, *CAME, confirmed(1), QUIET)),
    "given up by name": (ReadersServed, (*REMEMBERED, *CAME, given_up(1, 1), QUIET)),
    "given up, the last of several by name": (ReadersServed, (*REMEMBERED, mail("r", "x", 3), met("r", 3), given_up(1, 3), QUIET)),
    "came before the reader": (ReadersServed, (TYPES, *CAME, reader("standing"), QUIET)),
    "came when nobody was remembered": (ReadersServed, (*REMEMBERED, reader("forgotten"), *CAME, QUIET)),
    "of another type": (ReadersServed, (TYPES, reader("standing", "tea"), *CAME, QUIET)),
    "of a type that may go unread": (ReadersServed, (TYPES, reader("standing", "u"), mail("r", "x", kind="u"), met("r", 1), QUIET)),
    "of a type that nobody knows": (ReadersServed, (TYPES, reader("standing", "*"), met("r", 1), QUIET)),
    "at another node": (ReadersServed, (TYPES, reader("standing", node="c"), *CAME, QUIET)),
    "the disk took the reader along": (ReadersServed, (*REMEMBERED, lost("r"), *CAME, QUIET)),
    "the disk took along what was owed": (ReadersServed, (*REMEMBERED, *CAME, lost("r"), QUIET)),
}  # fmt: skip
WRONG: dict[str, tuple[type[Checker], tuple[Line, ...], str]] = {
    "acknowledged before it is durable": (MailWall, (says(1, 1), hack(1)), "r acknowledges message 1 of a/1"),
    "the second of two": (MailWall, (says(1, 1), says(2, 2), met("r", 1), hack(2)), "r acknowledges message 2 of a/1"),
    "durable elsewhere": (MailWall, (says(1, 1), met("c", 1), hack(1)), "r acknowledges message 1 of a/1"),
    "needed again": (MailWall, (says(1, 1), hello(1), hack(1)), "r acknowledges message 1 of a/1"),
    "on a disk that is lost": (MailWall, (says(1, 1), met("r", 1), lost("r"), hack(1)), "r acknowledges message 1 of a/1"),
    "spooled and nowhere": (MailWall, (status(),), "a says that a message is spooled which is not in its journal"),
    "another tag is spooled": (MailWall, (posted(2), status()), "a says that a message is spooled"),
    "spooled by nobody": (MailWall, (mail("a", "x"), status()), "a says that a message is spooled"),
    "spooled on a lost disk": (MailWall, (posted(), lost("a"), status()), "a says that a message is spooled"),
    "twice at the root": (MailOnce, (send("x"), at_root("x"), at_root("x")), "r has message 1 of a/1 twice"),
    "as two messages": (MailOnce, (send("x"), at_root("x"), at_root("x", 2)), "r has x twice, as two messages"),
    "twice, and another's disk went back": (MailOnce, (send("x"), at_root("x"), old("b"), at_root("x", 2)), "r has x twice"),
    "never sent": (MailOnce, (mail("a", "x"),), "x was never sent by anybody"),
    "of another type": (MailOnce, (send("x", "u"), mail("a", "x")), "x was never sent by anybody"),
    "forged": (MailOnce, (send("x"), mail("a", "x!")), "x! was never sent by anybody"),
    "one number for two": (MailOnce, (send("x"), send("y"), mail("a", "x"), mail("a", "y")), "a/1 gave number 1 to x and to y"),
    "back": (MailOrder, (TYPES, at_root("x", 2), at_root("y", 1)), "r got t number 1 of a/1 after 2 of 1"),
    "the same": (MailOrder, (TYPES, at_root("x", 2), at_root("x", 2)), "r got t number 2 of a/1 after 2 of 1"),
    "an era back": (MailOrder, (TYPES, at_root("x", 1, "a/2"), at_root("y", 9)), "r got t number 9 of a/1 after 1 of 2"),
    "behind what went back": (MailOrder, (TYPES, at_root("x", 2), at_root("y", 3), at_root("z", 2)), "r got t number 2 of a/1 after 3"),
    "two statuses": (OneStatus, (status(), status(why="local")), "p hears of its send 1 twice"),
    "a status of nothing": (OneStatus, (status(""),), "p hears of a send 1 that it did not wait for"),
    "no status": (OneStatus, (("a", "info", "program", ["p", [4]]),), "p never heard what became of 1 sends"),
    "handed twice": (OfferedOnce, (TYPES, offered(), offered()), "p is handed message 1 of a/1 again"),
    "twice, another disk is lost": (OfferedOnce, (TYPES, offered(), lost("b"), offered()), "p is handed message 1 of a/1 again"),
    "of a type that may go, twice": (OfferedOnce, (TYPES, offered(kind="u"), offered(kind="u")), "p is handed message 1 of a/1 again"),
    "never at the root": (MailComplete, (*CALLED, QUIET), "x never came to the root"),
    "called local": (MailComplete, (TYPES, send("x"), status(why="local"), QUIET), "x never came to the root"),
    "kept on the way alone": (MailComplete, (*CALLED, mail("c", "x"), QUIET), "x never came to the root"),
    "another was given up": (MailComplete, (*CALLED, dropped(2, 3), QUIET), "x never came to the root"),
    "a disk beside was lost": (MailComplete, (*CALLED, lost("b"), QUIET), "x never came to the root"),
    "the disk was lost before": (MailComplete, (lost("a"), *CALLED, QUIET), "x never came to the root"),
    "never confirmed": (ReadersServed, (*REMEMBERED, *CAME, QUIET), "log at r never confirmed message 1 of a/1"),
    "another confirmed": (ReadersServed, (*REMEMBERED, *CAME, confirmed(1, "cat"), confirmed(2), QUIET), "log at r never confirmed"),
    "others were given up": (ReadersServed, (*REMEMBERED, *CAME, given_up(2, 3), QUIET), "log at r never confirmed"),
    "one of two readers": (ReadersServed, (*REMEMBERED, reader("standing", "t", "cat"), *CAME, confirmed(1), QUIET), "cat at r never confirmed"),
    "by a pattern": (ReadersServed, (TYPES, reader("standing", "te*"), mail("r", "x", kind="tea"), met("r", 1), QUIET), "log at r never"),
    "another forgotten": (ReadersServed, (*REMEMBERED, reader("forgotten", "tea"), *CAME, QUIET), "log at r never confirmed"),
    "a disk elsewhere": (ReadersServed, (*REMEMBERED, *CAME, lost("c"), QUIET), "log at r never confirmed"),
}  # fmt: skip


@pytest.mark.parametrize("name", RIGHT)
def test_what_is_right_is_left_alone(name: str) -> None:
    kind, lines = RIGHT[name]
    assert judge(kind(), facts_of(lines)) is None


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(name: str) -> None:
    kind, lines, why = WRONG[name]
    verdict = judge(kind(), facts_of(lines))
    assert isinstance(verdict, Violation)
    assert verdict.why.startswith(why)
    assert kind.rule == verdict.rule

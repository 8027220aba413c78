"""Histories of clients, readers and chains: small ones, long ones, what is wrong with them; their twins."""

from typing import Any, Final

from tests.checks.standard import Case, Line, changed, places, put
from weft.base.chance import Chance
from weft.checks import ChainOrder, Fact, Read, Saw, Sealed, Sessions
from weft.checks.mail import Conserved

# Versions that a session reads


def wrote(client: str, version: int, key: str = "k") -> Line:
    return "", "ok", "wrote-version", [client, key, version]


def reads(client: str, version: int, key: str = "k") -> Line:
    return "", "ok", "read-version", [client, key, version]


def session(client: str) -> Line:
    return "", "ok", "session", [client]


def twin_of_sessions(facts: list[Fact]) -> bool:
    return all(_is_later(facts[:at], fact) for at, fact in enumerate(facts) if fact.what != "session")


def _is_later(before: list[Fact], fact: Fact) -> bool:
    client, key, version = fact.value
    begun = [at for at, other in enumerate(before) if other.what == "session" and other.value == [client]]
    since = before[begun[-1] :] if begun else before
    seen: list[int] = [other.value[2] for other in since if other.value[:2] == [client, key]]
    return all(version > other if fact.what == "wrote-version" else version >= other for other in seen)


def draw_sessions(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    top = 0
    for _ in range(chance.randint(1, 8)):
        do, client, key = chance.choice(("write", "read", "read", "session")), chance.choice("ab"), chance.choice("kl")
        top += chance.choice((0, 1, 1, -1))
        lines.append({"write": wrote, "read": reads}[do](client, top, key) if do != "session" else session(client))
    return lines


def long_sessions(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    for version in range(1, 101):
        client = chance.choice("abc")
        lines += [wrote(client, version), *[reads(other, version) for other in "abc" if chance.random() < 0.7]]
    return lines


def reads_backwards(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice([at for at in places(facts, "read-version") if facts[at].value[2] < 90])
    client = facts[at].value[0]
    later = [
        i for i in range(at + 1, len(facts)) if facts[i].value[0] == client and facts[i].value[2] > facts[at].value[2]
    ]
    return put(facts, chance.choice(later) + 1, facts[at])


def misses_its_own_write(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "wrote-version"))
    client, key, version = facts[at].value
    return put(facts, at + 1, Fact(0, "", 1, "ok", "read-version", [client, key, version - 1]))


# Values that clients and watchers read


def asks(key: str, value: Any, who: str = "a") -> Line:
    return who, "invoke", "put", ["store", key, value]


def told(key: str, value: Any, who: str = "a") -> Line:
    return who, "ok", "put", ["store", key, value]


def got(key: str, value: Any, who: str = "a") -> Line:
    return who, "ok", "got", ["store", key, value]


def saw(key: str, value: Any, who: str = "a") -> Line:
    return who, "ok", "saw", ["store", key, value]


def twin_of_read(facts: list[Fact]) -> bool:
    """Whether for every reader and key some way through the writes, never back, explains all that it read and knew."""
    return _explained(facts, "got") and all(
        any(other.kind == "invoke" and other.value == fact.value for other in facts[:at])
        for at, fact in enumerate(facts)
        if (fact.kind, fact.what) == ("ok", "put")
    )


def twin_of_saw(facts: list[Fact]) -> bool:
    return _explained([fact for fact in facts if (fact.kind, fact.what) != ("ok", "put")], "saw")


def _explained(facts: list[Fact], what: str) -> bool:
    readers = {(fact.node, fact.value[1]) for fact in facts if fact.kind == "ok"}
    return all(_has_a_way(facts, (node, what, key), 0, 0) for node, key in sorted(readers))


def _has_a_way(facts: list[Fact], reader: tuple[str, str, str], begin: int, stands: int) -> bool:
    """By trying all: `stands` is the write that is known when the facts from `begin` on follow."""
    node, what, key = reader
    for at in range(begin, len(facts)):
        fact = facts[at]
        if (fact.kind, fact.node, fact.value[1]) != ("ok", node, key):
            continue
        asked = [None, *[o.value[2] for o in facts[:at] if o.kind == "invoke" and o.value[1] == key]]
        fits = [number for number, value in enumerate(asked) if value == fact.value[2]]
        if fact.what == "put":
            stands = max([stands, *fits])
        elif fact.what == what:
            return any(_has_a_way(facts, reader, at + 1, number) for number in fits if number >= stands)
    return True


def draw_read(chance: Chance) -> list[Line]:
    return _draw_values(chance, "got")


def draw_saw(chance: Chance) -> list[Line]:
    return _draw_values(chance, "saw")


def _draw_values(chance: Chance, what: str) -> list[Line]:
    lines: list[Line] = []
    asked: list[Any] = [None]
    for number in range(1, chance.randint(2, 9)):
        if chance.random() < 0.4:
            asked.append(None if chance.random() < 0.4 else number)
            lines.append(asks("k", asked[-1]))
            if chance.random() < 0.6:
                lines.append(told("k", asked[-1]))
        else:
            low = 0 if chance.random() < 0.2 else max(0, len(asked) - 2)
            value = chance.choice(asked[low:]) if chance.random() < 0.95 else 99
            lines.append((chance.choice("ab"), "ok", what, ["store", "k", value]))
    return lines


def _long_values(chance: Chance, what: str) -> list[Line]:
    """One writer of three keys, deleting now and then, and two readers that follow."""
    lines: list[Line] = []
    for number in range(1, 151):
        key = chance.choice("klm")
        value = None if chance.random() < 0.2 else number
        lines += [asks(key, value), told(key, value)]
        lines += [(reader, "ok", what, ["store", key, value]) for reader in "bc"]
    return lines


def long_read(chance: Chance) -> list[Line]:
    return _long_values(chance, "got")


def long_saw(chance: Chance) -> list[Line]:
    return _long_values(chance, "saw")


def an_older_value(facts: list[Fact], chance: Chance) -> list[Fact]:
    """Somebody reads a value once more, after a later write of that key; it may have been deleted meanwhile."""
    at = chance.choice([at for at in _values(facts) if _later(facts, at)])
    return put(facts, chance.choice(_later(facts, at)) + 1, facts[at])


def _values(facts: list[Fact]) -> list[int]:
    return [at for at, fact in enumerate(facts) if fact.what in ("got", "saw") and fact.value[2] is not None]


def _later(facts: list[Fact], at: int) -> list[int]:
    fact = facts[at]
    return [
        i
        for i in range(at + 1, len(facts))
        if (facts[i].node, facts[i].what, facts[i].value[1]) == (fact.node, fact.what, fact.value[1])
    ]


def what_nobody_wrote(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(_values(facts))
    return changed(facts, at, value=[*facts[at].value[:2], "nobody's"])


# Chains


def offer(number: int, place: int, *places_now: int, again: bool = False, node: str = "n", way: str = "in") -> Line:
    stand = [[1, each, 1, 0] for each in places_now]
    return node, "sent", "offer", [way, "a/1", number, [1, place, 1, 0], stand, again]


def twin_of_chain_order(facts: list[Fact]) -> bool:
    return all(_is_next(facts[:at], fact) for at, fact in enumerate(facts))


def _is_next(before: list[Fact], fact: Fact) -> bool:
    way, origin, number, place, now, is_again = fact.value
    same = [o for o in before if (o.node, o.process, *o.value[:3]) == (fact.node, fact.process, way, origin, number)]
    if is_again or not same:
        return True
    last, then = same[-1].value[3], same[-1].value[4]
    passed_by = [each for each in then if each in now and last < each < place]
    return bool(last < place and not passed_by)


def draw_chain_order(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    at = {1: 0, 2: 0}
    for _ in range(chance.randint(1, 6)):
        number = chance.choice((1, 2))
        stand = [each for each in range(1, 6) if chance.random() < 0.6]
        further = [each for each in stand if each > at[number]]
        place = further[0] if further and chance.random() < 0.9 else chance.randint(1, 5)
        at[number] = place
        lines.append(offer(number, place, *stand, again=chance.random() < 0.1))
    return lines


def long_chain_order(chance: Chance) -> list[Line]:
    """A hundred messages through five links that stand all the time, several under way at once."""
    lines: list[Line] = []
    under_way: dict[int, int] = {}
    coming = list(range(1, 101))
    while coming or under_way:
        if coming and len(under_way) < 8:
            under_way[coming.pop(0)] = 0
        number = chance.choice(list(under_way))
        under_way[number] += 1
        lines.append(offer(number, under_way[number], 1, 2, 3, 4, 5))
        if under_way[number] == 5:
            del under_way[number]
    return lines


def offered_twice(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.randrange(len(facts))
    return put(facts, chance.randint(at + 1, len(facts)), facts[at])


def one_skipped(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice([at for at, fact in enumerate(facts) if 1 < fact.value[3][1] < 5])
    return [*facts[:at], *facts[at + 1 :]]


def two_change_places(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice([at for at, fact in enumerate(facts) if fact.value[3][1] < 5])
    other = next(i for i in range(at + 1, len(facts)) if facts[i].value[2] == facts[at].value[2])
    swapped = list(facts)
    swapped[at], swapped[other] = facts[other], facts[at]
    return swapped


# What chains count


def accounts(*stretches: tuple[str, int, int]) -> Line:
    return "n", "info", "accounts", [list(each) for each in stretches]


def idle(count: int) -> Line:
    return "n", "info", "idle", count


def chains(*counts: int) -> Line:
    return "n", "info", "chains", list(counts)


def twin_of_conserved(facts: list[Fact]) -> bool:
    sums = [fact.value for fact in facts if fact.what == "idle"]
    sums += [missing * missing for fact in facts if fact.what == "accounts" for _, _, missing in fact.value]
    sums += [sum(fact.value) for fact in facts if fact.what == "chains"]
    return not sum(sums)


def draw_conserved(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    for _ in range(chance.randint(1, 5)):
        wrong = chance.choice((-1, 1, 2)) if chance.random() < 0.1 else 0
        made = chance.choice((accounts(("x", 5, wrong), ("y", 0, 0)), idle(abs(wrong)), chains(0, abs(wrong), 0)))
        lines.append(made)
    return lines


def long_conserved(chance: Chance) -> list[Line]:
    lines = [line for at in range(100) for line in (idle(0), accounts(("x", at, 0), ("y", chance.randint(0, at), 0)))]
    return [*lines, chains(0, 0, 0)]


def one_more_or_less(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "accounts"))
    name, taken, _ = facts[at].value[0]
    return changed(facts, at, value=[[name, taken, chance.choice((-1, 1))], facts[at].value[1]])


def one_waits_though_there_is_room(facts: list[Fact], chance: Chance) -> list[Fact]:
    return changed(facts, chance.choice(places(facts, "idle")), value=chance.randint(1, 9))


def one_left_in_the_end(facts: list[Fact], chance: Chance) -> list[Fact]:
    counts = [0, 0, 0]
    counts[chance.randrange(3)] = 1
    return changed(facts, places(facts, "chains")[0], value=counts)


# Strangers


def members(*names: str) -> Line:
    """`a` of no fleet, `a@f` of fleet f."""
    return "", "info", "members", [[*name.partition("@")[::2]] for name in names]


def joins(node: str, what: str = "child-joined") -> Line:
    return "r", "event", what, [node]


def held(node: str) -> Line:
    return "r", "durable", "held", [1, f"{node}/1", 1, 2]


def segment(node: str, *, is_loss: bool = False) -> Line:
    claims = [[f"{node}/1", 1, 2]]
    return "r", "durable", "segment", [1, 1, [] if is_loss else claims, claims if is_loss else [], []]


def mail(node: str) -> Line:
    return "r", "durable", "mail", ["in", f"{node}/1", 1, "t", "text", None]


def met(node: str) -> Line:
    return "r", "durable", "met", [f"{node}/1", [1]]


def change(node: str) -> Line:
    return "r", "durable", "change", [1, "k", 1, "01", [[node, 1]], False, True, None]


def knocked(  # tidy: a line has so many
    who: str, *, is_in: bool = False, said: int = 0, refused: int = 0, is_changed: bool = False, answered: int = 0
) -> Line:
    return "r", "info", "knocked", [who, "control", is_in, said, refused, is_changed, answered]


KINDS: Final = (joins, held, segment, mail, met, change)


def twin_of_sealed(facts: list[Fact]) -> bool:
    known = [name for name, _ in next(fact.value for fact in facts if fact.what == "members")]
    return all(f'"{name}' not in str(fact).replace("~", '"') for fact in facts for name in "xyz" if name not in known)


def draw_sealed(chance: Chance) -> list[Line]:
    names = ["x" if chance.random() < 0.1 else chance.choice("ab") for _ in range(chance.randint(1, 6))]
    return [members("a", "b", "r"), *[chance.choice(KINDS)(name) for name in names]]


def long_sealed(chance: Chance) -> list[Line]:
    return [members("a", "b", "r"), *[chance.choice(KINDS)(chance.choice("ab")) for _ in range(200)]]


def a_strangers(facts: list[Fact], chance: Chance) -> list[Fact]:
    node, kind, what, value = chance.choice(KINDS)("x")
    return put(facts, chance.randint(1, len(facts)), Fact(0, node, 1, kind, what, value))


def one_is_no_member(facts: list[Fact], chance: Chance) -> list[Fact]:
    return changed(facts, 0, value=[["r", ""], [chance.choice("ab"), ""]])


CASES: Final = (
    Case(Sessions, draw_sessions, twin_of_sessions, long_sessions, (reads_backwards, misses_its_own_write)),
    Case(Read, draw_read, twin_of_read, long_read, (an_older_value, what_nobody_wrote)),
    Case(Saw, draw_saw, twin_of_saw, long_saw, (an_older_value, what_nobody_wrote)),
    Case(
        ChainOrder,
        draw_chain_order,
        twin_of_chain_order,
        long_chain_order,
        (offered_twice, one_skipped, two_change_places),
    ),
    Case(
        Conserved,
        draw_conserved,
        twin_of_conserved,
        long_conserved,
        (one_more_or_less, one_waits_though_there_is_room, one_left_in_the_end),
    ),
    Case(Sealed, draw_sealed, twin_of_sealed, long_sealed, (a_strangers, one_is_no_member)),
)

_ABR: Final = members("a", "b", "r")
GOOD: Final[dict[type[Any], dict[str, tuple[Line, ...]]]] = {
    Sessions: {
        "nothing": (),
        "its own write": (wrote("a", 3), reads("a", 3)),
        "a later one": (wrote("a", 3), reads("a", 5), reads("a", 5)),
        "another client may see less": (wrote("a", 3), reads("b", 2)),
        "another node may have less": (reads("a", 3), session("a"), reads("a", 2)),
        "another key may be older": (reads("a", 3), reads("a", 2, "l")),
        "a write over what it had read": (reads("a", 3), wrote("a", 4)),
        "two writes": (wrote("a", 3), wrote("a", 4), reads("a", 4)),
        "nothing is there yet": (reads("a", 0), wrote("a", 1)),
        "the same as another": (wrote("b", 3), reads("a", 3), reads("b", 3)),
        "its own write in a new session": (wrote("a", 3), session("a"), wrote("a", 2)),
    },
    Read: {
        "nothing is there": (got("k", None),),
        "its own write": (asks("k", 1), told("k", 1), got("k", 1)),
        "its own write, not told yet": (asks("k", 1), got("k", 1)),
        "a write that may not have happened": (asks("k", 1), told("k", 1), asks("k", 2), got("k", 1)),
        "and may have": (asks("k", 1), told("k", 1), asks("k", 2), got("k", 2)),
        "another sees less": (asks("k", 1), told("k", 1), got("k", None, "b")),
        "another catches up": (asks("k", 1), asks("k", 2), got("k", 1, "b"), got("k", 2, "b")),
        "deleted": (asks("k", 1), told("k", 1), asks("k", None), told("k", None), got("k", None)),
        "deleted, and written anew": (asks("k", 1), asks("k", None), asks("k", 2), got("k", None), got("k", 2)),
        "deleted twice": (asks("k", None), asks("k", 1), asks("k", None), got("k", None), got("k", 1), got("k", None)),
        "another key": (asks("k", 1), told("k", 1), got("l", None)),
    },
    Saw: {
        "nothing is there": (saw("k", None),),
        "a write": (asks("k", 1), saw("k", 1)),
        "again": (asks("k", 1), saw("k", 1), saw("k", 1)),
        "one after the other": (asks("k", 1), asks("k", 2), saw("k", 1), saw("k", 2)),
        "not every one": (asks("k", 1), asks("k", 2), saw("k", 2)),
        "deleted": (asks("k", 1), asks("k", None), saw("k", 1), saw("k", None)),
        "written anew": (asks("k", 1), asks("k", None), asks("k", 2), saw("k", None), saw("k", 2)),
        "late, whatever its client was told": (asks("k", 1), told("k", 1), saw("k", None), saw("k", 1)),
        "another watcher is behind": (asks("k", 1), asks("k", 2), saw("k", 2), saw("k", 1, "b")),
        "another key": (asks("k", 2), asks("l", 1), saw("k", 2), saw("l", 1)),
    },
    ChainOrder: {
        "nothing": (),
        "once": (offer(1, 2, 2),),
        "one after the other": (offer(1, 1, 1, 2), offer(1, 2, 1, 2)),
        "two messages at one link": (offer(1, 1, 1), offer(2, 1, 1)),
        "both ways": (offer(1, 2, 2), offer(1, 1, 1, way="out")),
        "at two nodes": (offer(1, 2, 2), offer(1, 1, 1, node="m")),
        "past one that came meanwhile": (offer(1, 1, 1, 3), offer(1, 3, 1, 2, 3)),
        "past one that went meanwhile": (offer(1, 1, 1, 2, 3), offer(1, 3, 1, 3)),
        "again, since its program was lost": (offer(1, 2, 2), offer(1, 2, 2, again=True)),
        "again, further ahead": (offer(1, 2, 1, 2), offer(1, 1, 1, again=True)),
        "on behind that": (offer(1, 2, 1, 2), offer(1, 1, 1, 4, again=True), offer(1, 4, 1, 4)),
    },
    Conserved: {
        "nothing": (),
        "nobody waits": (idle(0),),
        "all of it": (accounts(("x", 5, 0)),),
        "all of several": (accounts(("x", 5, 0), ("y", 0, 0)),),
        "nothing taken": (accounts(("x", 0, 0)),),
        "no stretch": (accounts(),),
        "nothing is left": (chains(0, 0, 0),),
        "twice": (idle(0), idle(0)),
        "later more": (accounts(("x", 5, 0)), accounts(("x", 9, 0))),
        "all together": (idle(0), accounts(("x", 5, 0)), chains(0, 0, 0)),
    },
    Sealed: {
        "nothing": (),
        "nobody says anything": (_ABR,),
        "a child": (_ABR, joins("a")),
        "a parent": (_ABR, joins("a", "parent-joined")),
        "records": (_ABR, held("b")),
        "rows": (_ABR, segment("a")),
        "a loss": (_ABR, segment("a", is_loss=True)),
        "messages": (_ABR, mail("a"), met("b")),
        "the store": (_ABR, change("a")),
        "the store under a new name": (_ABR, change("a~2")),
        "a stranger at a door": (_ABR, knocked("unknown")),
        "a key of another role that is refused": (_ABR, knocked("bridge", is_in=True, said=3, refused=3)),
        "a key of another role that says nothing": (_ABR, knocked("recorded", is_in=True)),
        "an operation of a document": (_ABR, ("r", "durable", "held", [8, "bout/4256/0", 1, 1])),
        "of the same fleet": (members("a@f", "r@f", "b@g"), joins("a"), held("a")),
        "one more member": (_ABR, members("a", "c"), joins("c")),
    },
}
BAD: Final[dict[type[Any], dict[str, tuple[Line, ...]]]] = {
    Sessions: {
        "not its own write": (wrote("a", 3), reads("a", 2)),
        "an older one than before": (reads("a", 3), reads("a", 2)),
        "a write below what it had read": (reads("a", 3), wrote("a", 3)),
        "nothing any more": (reads("a", 3), reads("a", 0)),
        "not its own second write": (wrote("a", 3), wrote("a", 4), reads("a", 3)),
        "an older one than long before": (reads("a", 3), reads("a", 5), reads("a", 4)),
        "a write far below": (wrote("a", 3), wrote("a", 1)),
        "in another's new session": (reads("a", 3), session("b"), reads("a", 2)),
        "in the second session": (reads("a", 9), session("a"), reads("a", 3), reads("a", 2)),
        "beside another key": (reads("a", 3), reads("a", 9, "l"), reads("a", 2)),
        "after another had read it": (reads("a", 3), reads("b", 2), reads("a", 2)),
    },
    Read: {
        "not its own write": (asks("k", 1), told("k", 1), got("k", None)),
        "an older one": (asks("k", 1), told("k", 1), asks("k", 2), told("k", 2), got("k", 1)),
        "backwards": (asks("k", 1), asks("k", 2), got("k", 2, "b"), got("k", 1, "b")),
        "nothing any more": (asks("k", 1), got("k", 1, "b"), got("k", None, "b")),
        "what nobody wrote": (asks("k", 1), got("k", 7)),
        "what is written later": (got("k", 1), asks("k", 1)),
        "back after it was deleted": (asks("k", 1), asks("k", None), told("k", None), got("k", 1)),
        "back after it was read as deleted": (
            asks("k", 1),
            got("k", 1, "b"),
            asks("k", None),
            got("k", None, "b"),
            got("k", 1, "b"),
        ),
        "of another key": (asks("k", 1), got("l", 1)),
        "of another protocol": (asks("k", 1), ("a", "ok", "got", ["documents", "k", 1])),
        "told what nobody asked for": (told("k", 1),),
        "backwards twice removed": (asks("k", 1), asks("k", 2), asks("k", 3), got("k", 3), got("k", 1)),
    },
    Saw: {
        "backwards": (asks("k", 1), asks("k", 2), saw("k", 2), saw("k", 1)),
        "nothing any more": (asks("k", 1), saw("k", 1), saw("k", None)),
        "what nobody wrote": (saw("k", 1),),
        "what is written later": (saw("k", 1), asks("k", 1)),
        "back after it was deleted": (asks("k", 1), asks("k", None), saw("k", 1), saw("k", None), saw("k", 1)),
        "of another key": (asks("k", 1), saw("l", 1)),
        "of another protocol": (asks("k", 1), ("a", "ok", "saw", ["documents", "k", 1])),
        "backwards twice removed": (asks("k", 1), asks("k", 2), asks("k", 3), saw("k", 3), saw("k", 1)),
        "out of order": (asks("k", 1), asks("k", 2), asks("k", 3), saw("k", 1), saw("k", 3), saw("k", 2)),
        "beside another watcher": (asks("k", 1), asks("k", 2), saw("k", 2), saw("k", 1, "b"), saw("k", 1)),
    },
    ChainOrder: {
        "twice at one link": (offer(1, 2, 2), offer(1, 2, 2)),
        "back": (offer(1, 2, 1, 2), offer(1, 1, 1, 2)),
        "back after a while": (offer(1, 1, 1, 2, 3), offer(1, 2, 1, 2, 3), offer(1, 1, 1, 2, 3)),
        "one skipped": (offer(1, 1, 1, 2, 3), offer(1, 3, 1, 2, 3)),
        "two skipped": (offer(1, 1, 1, 2, 3, 4), offer(1, 4, 1, 2, 3, 4)),
        "one skipped, and another went": (offer(1, 1, 1, 2, 3, 4), offer(1, 4, 1, 3, 4)),
        "one skipped, and another came": (offer(1, 1, 1, 3, 4), offer(1, 4, 1, 2, 3, 4)),
        "twice though it was again before": (offer(1, 2, 2), offer(1, 2, 2, again=True), offer(1, 2, 2)),
        "back to one that came meanwhile": (offer(1, 2, 2), offer(1, 1, 1, 2)),
        "twice beside another message": (offer(1, 2, 2), offer(2, 2, 2), offer(1, 2, 2)),
        "on the way out": (offer(1, 2, 1, 2, way="out"), offer(1, 1, 1, 2, way="out")),
    },
    Conserved: {
        "one waits": (idle(1),),
        "many wait": (idle(9),),
        "one is nowhere": (accounts(("x", 5, 1)),),
        "one is in two places": (accounts(("x", 5, -1)),),
        "one of the second stretch": (accounts(("x", 5, 0), ("y", 1, 1)),),
        "one too much here, one too few there": (accounts(("x", 5, 1), ("y", 5, -1)),),
        "later": (accounts(("x", 5, 0)), accounts(("x", 6, 1))),
        "one counted in the end": (chains(1, 0, 0),),
        "one at a link in the end": (chains(0, 1, 0),),
        "one in the inbox in the end": (chains(0, 0, 1),),
    },
    Sealed: {
        "a child": (_ABR, joins("x")),
        "a parent": (_ABR, joins("x", "parent-joined")),
        "records": (_ABR, held("x")),
        "a loss": (_ABR, ("r", "durable", "lost", [1, "x/1", 1, 2, ""])),
        "rows": (_ABR, segment("x")),
        "a loss in the lake": (_ABR, segment("x", is_loss=True)),
        "messages that are kept": (_ABR, mail("x")),
        "messages that have been here": (_ABR, met("x")),
        "the store": (_ABR, change("x")),
        "the store under a new name": (_ABR, change("x~2")),
        "a stranger without a key came in": (_ABR, knocked("plain", is_in=True)),
        "a stranger with a key of its own came in": (_ABR, knocked("unknown", is_in=True)),
        "a refusal that was not counted": (_ABR, knocked("bridge", is_in=True, said=2, refused=1)),
        "an effect": (_ABR, knocked("recorded", is_in=True, said=1, refused=1, is_changed=True)),
        "an answer": (_ABR, knocked("service", is_in=True, said=1, refused=1, answered=1)),
        "of another fleet": (members("a@f", "r@g"), joins("a")),
        "records of another fleet": (members("a@f", "r@g"), held("a")),
        "among others": (_ABR, held("a"), held("b"), held("x")),
        "without a name": (_ABR, joins("")),
    },
}

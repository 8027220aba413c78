"""Histories of roots and of what they write: small ones, long ones, what is wrong with them; their twins."""

from typing import Any, Final

from tests.checks.standard import Case, Line, changed, places, put, without
from weft.base.chance import Chance
from weft.checks import Fact, NeverBack, OneRoot, OwnNumbers

EPOCH: Final = 1 << 40


def taken(node: str, epoch: int, *, is_acting: bool = False) -> Line:
    return node, "event", "root-taken", ["f", epoch, is_acting]


def promise(node: str, epoch: int) -> Line:
    return node, "durable", "promise", [epoch]


def vote(node: str, epoch: int) -> Line:
    return node, "sent", "vote", ["f", epoch]


def write(node: str, epoch: int, counter: int, key: str = "/k", value: str = "v") -> Line:
    return node, "sent", "write", ["f", epoch * EPOCH + counter, key, value]


def durable(node: str, epoch: int, counter: int, last: int = 0) -> Line:
    return node, "durable", "taken", [6, f"f:configuration/{epoch}", counter, last or counter]


def tick(where: str, author: str, number: int) -> Line:
    said = [number, "k", number, "01", [[author, number]], author.partition("~")[0] == where, True, None]
    return where, "durable", "change", said


def disk(node: str, how: str = "lost") -> Line:
    return node, "info", "disk", [how, [], []]


def applied(node: str, number: int) -> Line:
    return node, "event", "applied", [number]


def pair(node: str, number: int, key: str = "/k", value: str = "v") -> Line:
    return node, "ok", "read-pair", ["f", key, number, value]


def went_back(node: str) -> Line:
    return node, "event", "went-back", [0, 9]


# One root of an epoch


def twin_of_one_root(facts: list[Fact]) -> bool:
    return all(_is_one(facts[:at], fact) for at, fact in enumerate(facts))


def _is_one(before: list[Fact], fact: Fact) -> bool:
    own = [other for other in before if other.node == fact.node]
    disks = [at for at, other in enumerate(own) if other.what == "disk"]
    promises = [other.value[0] for other in (own[disks[-1] :] if disks else own) if other.what == "promise"]
    promised: int = promises[-1] if promises else -1
    if fact.what == "vote":
        return bool(fact.value[1] <= promised)
    if fact.what == "write":
        return bool(fact.value[1] // EPOCH >= promised)
    if fact.what == "root-taken" and not fact.value[2]:
        rivals = [o for o in before if o.what == "root-taken" and o.value == fact.value and o.node != fact.node]
        return not rivals or any(other.what == "disk" for other in before)
    return True


def draw_one_root(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    epoch = 0
    for _ in range(chance.randint(1, 7)):
        node = chance.choice("abc")
        do = chance.choice(("take", "take", "act", "promise", "promise", "vote", "write", "disk"))
        if do in ("take", "act"):
            epoch += chance.random() < 0.8
            lines.append(taken(node, epoch, is_acting=do == "act"))
        elif do == "disk":
            lines.append(disk(node))
        elif do == "promise":
            lines.append(promise(node, chance.randint(0, 3)))
        elif do == "vote":
            lines.append(vote(node, chance.randint(0, 2)))
        else:
            lines.append(write(node, chance.randint(0, 3), 1))
    return lines


def long_one_root(chance: Chance) -> list[Line]:
    """Forty elections among five nodes."""
    lines: list[Line] = []
    for epoch in range(1, 41):
        voters = chance.sample("abcde", k=5)
        for node in voters[:3]:
            lines += [promise(node, epoch), vote(node, epoch)]
        lines.append(taken(voters[0], epoch))
        lines += [write(voters[0], epoch, counter) for counter in range(1, 4)]
    return lines


def second_root(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "root-taken"))
    other = chance.choice([node for node in "abcde" if node != facts[at].node])
    return put(facts, chance.randint(at, len(facts)), Fact(0, other, 1, "event", "root-taken", facts[at].value))


def vote_without_a_promise(facts: list[Fact], chance: Chance) -> list[Fact]:
    return without(facts, chance.choice(places(facts, "promise")))


def promise_behind_the_vote(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "promise"))
    return [*facts[:at], facts[at + 1], facts[at], *facts[at + 2 :]]


def writes_on_in_an_old_epoch(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "write"))
    node, epoch = facts[at].node, facts[at].value[1] // EPOCH
    return put(facts, at, Fact(0, node, 1, "durable", "promise", [epoch + chance.randint(1, 3)]))


# Never back


def twin_of_never_back(facts: list[Fact]) -> bool:
    return all(_is_forward(facts[:at], fact) for at, fact in enumerate(facts))


def _is_forward(before: list[Fact], fact: Fact) -> bool:
    resets = ("disk", "went-back", "other-topics")
    own = [other for other in before if other.node == fact.node]
    last = max((at for at, other in enumerate(own) if other.what in resets), default=-1)
    since = own[last + 1 :]
    if fact.what == "applied":
        return all(other.value[0] <= fact.value[0] for other in since if other.what == "applied")
    if fact.what == "read-pair":
        fleet, key, number, value = fact.value
        wrote = [other.value[2:] for other in before if other.what == "write" and other.value[:2] == [fleet, number]]
        is_heard = any(other.what == "write" and other.value[0] == fleet for other in before)
        if is_heard and wrote[-1:] != [[key, value]] and not any(other.what == "disk" for other in before):
            return False
        read = [o.value[2] for o in since if o.what == "read-pair" and (o.process, o.value[1]) == (fact.process, key)]
        return all(other <= number for other in read)
    return True


def draw_never_back(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    top = dict.fromkeys("ab", 0)
    for _ in range(chance.randint(1, 8)):
        node = chance.choice("ab")
        do = chance.choice(("apply", "apply", "pair", "pair", "write", "back", "disk"))
        top[node] = max(0, top[node] + chance.choice((0, 1, 1, 2, 1, 1, -1)))
        if do == "apply":
            lines.append(applied(node, top[node]))
        elif do == "pair":
            lines.append(pair(node, top[node], chance.choice(("/k", "/l")), "w" if chance.random() < 0.1 else "v"))
        elif do == "write":
            lines.append(write("r", 0, chance.randint(1, 3)))
        else:
            lines.append(disk(node) if do == "disk" else went_back(node))
    return lines


def long_never_back(chance: Chance) -> list[Line]:
    """A root that writes a hundred times, and two nodes that read behind it."""
    lines: list[Line] = []
    at = dict.fromkeys("ab", 0)
    wrote: dict[int, tuple[str, str]] = {}
    for number in range(1, 101):
        wrote[number] = f"/k{chance.randrange(3)}", f"v{number}"
        lines.append(write("r", 0, number, *wrote[number]))
        for node in "ab":
            upto = chance.randint(at[node], number)
            for seen in range(at[node] + 1, upto + 1):
                lines += [applied(node, seen), pair(node, seen, *wrote[seen])]
            at[node] = upto
    return lines


def _behind(facts: list[Fact], what: str, at: int) -> int:
    """A place behind a later fact of that node and name."""
    node, key = facts[at].node, facts[at].value[1:2]
    fits = [i for i in places(facts, what) if i > at and facts[i].node == node and facts[i].value[1:2] == key]
    return fits[-1] + 1 if fits else 0


def applied_an_older_one(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice([i for i in places(facts, "applied") if facts[i].value[0] < 50])
    later = [i for i in places(facts, "applied") if facts[i].node == facts[at].node and i > at]
    return put(facts, chance.choice(later) + 1, facts[at])


def read_an_older_one(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice([i for i in places(facts, "read-pair") if _behind(facts, "read-pair", i)])
    return put(facts, _behind(facts, "read-pair", at), facts[at])


def read_what_nobody_wrote(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "read-pair"))
    return changed(facts, at, value=[*facts[at].value[:3], "nobody's"])


# Own numbers


def twin_of_own_numbers(facts: list[Fact]) -> bool:
    return all(_is_behind_its_wall(facts[:at], fact) for at, fact in enumerate(facts))


def _is_behind_its_wall(before: list[Fact], fact: Fact) -> bool:
    if fact.what == "change":
        author, number = fact.value[4][0]
        home = author.partition("~")[0]
        is_own = any(o.node == home and o.value[4][0] == [author, number] for o in before if o.what == "change")
        return home == fact.node or is_own
    if fact.what == "write":
        own = [other for other in before if other.node == fact.node]
        lost = [at for at, other in enumerate(own) if other.what == "disk" and other.value[0] == "lost"]
        epoch, counter = divmod(fact.value[1], EPOCH)
        kept = [o.value for o in (own[lost[-1] :] if lost else own) if o.what == "taken"]
        return any(s == 6 and o.endswith(f"/{epoch}") and first <= counter <= last for s, o, first, last in kept)
    return True


def draw_own_numbers(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    top = 0
    for _ in range(chance.randint(1, 7)):
        do = chance.choice(("keep", "keep", "write", "write", "tick", "tick", "copy", "disk"))
        if do == "keep":
            lines.append(durable("r", 1, top + 1, top + chance.randint(1, 2)))
            top = lines[-1][3][3]
        elif do == "write" and (top or chance.random() < 0.1):
            lines.append(write("r", 1, chance.randint(1, max(1, top + (chance.random() < 0.1)))))
        elif do in ("tick", "copy"):
            ticks = [line[3][0] for line in lines if line[2] == "change" and line[0] == "a"] or [1]
            is_known = do == "copy" and chance.random() < 0.9
            number = chance.choice(ticks) if is_known else chance.randint(1, 4)
            lines.append(tick("a" if do == "tick" else "b", "a", number))
        elif do == "disk" and chance.random() < 0.3:
            lines.append(disk("r", chance.choice(("lost", "old"))))
    return lines


def long_own_numbers(chance: Chance) -> list[Line]:
    lines: list[Line] = []
    for number in range(1, 81):
        author = chance.choice("ab")
        other = "b" if author == "a" else "a"
        lines += [tick(author, author, number), tick(other, author, number), tick("c", author, number)]
        lines += [durable("r", 1, number), write("r", 1, number)]
    return lines


def tick_never_at_home(facts: list[Fact], chance: Chance) -> list[Fact]:
    return without(facts, chance.choice(places(facts, "change", lambda fact: fact.value[4][0][0] == fact.node)))


def tick_elsewhere_first(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "change", lambda fact: fact.value[4][0][0] == fact.node))
    return [*facts[:at], facts[at + 1], facts[at], *facts[at + 2 :]]


def published_before_durable(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "write"))
    return [*facts[: at - 1], facts[at], facts[at - 1], *facts[at + 1 :]]


def published_another_number(facts: list[Fact], chance: Chance) -> list[Fact]:
    at = chance.choice(places(facts, "write"))
    fleet, number, *rest = facts[at].value
    return changed(facts, at, value=[fleet, number + EPOCH, *rest])


CASES: Final = (
    Case(
        OneRoot,
        draw_one_root,
        twin_of_one_root,
        long_one_root,
        (second_root, vote_without_a_promise, promise_behind_the_vote, writes_on_in_an_old_epoch),
    ),
    Case(
        NeverBack,
        draw_never_back,
        twin_of_never_back,
        long_never_back,
        (applied_an_older_one, read_an_older_one, read_what_nobody_wrote),
    ),
    Case(
        OwnNumbers,
        draw_own_numbers,
        twin_of_own_numbers,
        long_own_numbers,
        (tick_never_at_home, tick_elsewhere_first, published_before_durable, published_another_number),
    ),
)

BACK: Final = went_back("a")
GOOD: Final[dict[type[Any], dict[str, tuple[Line, ...]]]] = {
    OneRoot: {
        "nothing": (),
        "one root": (taken("a", 1),),
        "the same root again": (taken("a", 1), taken("a", 1)),
        "a later one": (taken("a", 1), taken("b", 2)),
        "one that acts beside it": (taken("a", 1), taken("b", 1, is_acting=True)),
        "two that act": (taken("a", 1, is_acting=True), taken("b", 1, is_acting=True)),
        "a vote behind its promise": (promise("a", 1), vote("a", 1)),
        "two votes in one epoch for the same": (promise("a", 1), vote("a", 1), vote("a", 1)),
        "a vote in an epoch below the promise, said again": (promise("a", 2), vote("a", 1)),
        "a root of another fleet": (taken("a", 1), ("b", "event", "root-taken", ["g", 1, False])),
        "again by another, since a disk was lost": (taken("a", 1), disk("a"), taken("b", 1)),
        "a write in the epoch that was promised": (promise("a", 1), write("a", 1, 1)),
        "a write before another is promised": (write("a", 1, 1), promise("a", 2)),
        "a promise that went with the disk": (promise("a", 2), disk("a"), write("a", 1, 1)),
    },
    NeverBack: {
        "nothing": (),
        "ever later": (applied("a", 1), applied("a", 2)),
        "the same": (applied("a", 2), applied("a", 2)),
        "another node is behind": (applied("a", 2), applied("b", 1)),
        "back, and says so": (applied("a", 2), BACK, applied("a", 1)),
        "back with its disk": (applied("a", 2), disk("a", "old"), applied("a", 1)),
        "other topics": (applied("a", 2), ("a", "event", "other-topics", ["/x/"]), applied("a", 1)),
        "a pair as it was written": (write("r", 0, 1), pair("a", 1)),
        "a pair of which nobody saw the write": (pair("a", 7),),
        "a pair twice": (pair("a", 1), pair("a", 1)),
        "another key of a lower number": (pair("a", 2), pair("a", 1, "/l")),
        "a pair back, and says so": (pair("a", 2), BACK, pair("a", 1)),
        "a number that came again behind a lost disk": (write("r", 0, 1), disk("r"), pair("a", 1, value="w")),
    },
    OwnNumbers: {
        "nothing": (),
        "durable, then published": (durable("r", 1, 1), write("r", 1, 1)),
        "published again": (durable("r", 1, 1), write("r", 1, 1), write("r", 1, 1)),
        "several at once": (durable("r", 1, 1, 3), write("r", 1, 2)),
        "of two epochs": (durable("r", 1, 1), durable("r", 2, 1), write("r", 2, 1), write("r", 1, 1)),
        "durable again after its disk was lost": (durable("r", 1, 1), disk("r"), durable("r", 1, 1), write("r", 1, 1)),
        "an old disk": (durable("r", 1, 1), disk("r", "old"), write("r", 1, 1)),
        "a tick at home": (tick("a", "a", 1),),
        "then elsewhere": (tick("a", "a", 1), tick("b", "a", 1), tick("c", "a", 1)),
        "given back": (tick("a", "a", 1), tick("b", "a", 1), disk("a"), tick("a", "a", 1)),
        "under another name": (tick("a", "a~2", 1), tick("b", "a~2", 1)),
        "elsewhere alone, since the disk is lost": (tick("a", "a", 1), disk("a"), tick("b", "a", 1)),
    },
}
BAD: Final[dict[type[Any], dict[str, tuple[Line, ...]]]] = {
    OneRoot: {
        "two of one epoch": (taken("a", 1), taken("b", 1)),
        "two of one epoch, later": (taken("a", 1), taken("a", 2), taken("b", 1)),
        "two, of whom one acted before": (taken("b", 1, is_acting=True), taken("a", 1), taken("b", 1)),
        "a vote without a promise": (vote("a", 1),),
        "a vote above its promise": (promise("a", 1), vote("a", 2)),
        "a vote by another's promise": (promise("b", 1), vote("a", 1)),
        "a vote before its promise": (vote("a", 1), promise("a", 1)),
        "a vote by a promise that is lost": (promise("a", 1), disk("a"), vote("a", 1)),
        "a write below its promise": (promise("a", 2), write("a", 1, 1)),
        "a write two epochs below": (promise("a", 1), promise("a", 3), write("a", 2, 9)),
        "a write in an old epoch after it was root": (
            taken("a", 1),
            write("a", 1, 1),
            promise("a", 2),
            write("a", 1, 2),
        ),
    },
    NeverBack: {
        "back": (applied("a", 2), applied("a", 1)),
        "back after a while": (applied("a", 1), applied("a", 5), applied("a", 6), applied("a", 4)),
        "back, and another says so": (applied("a", 2), went_back("b"), applied("a", 1)),
        "back, and says so too late": (applied("a", 2), applied("a", 1), BACK),
        "back again, though it said so before": (BACK, applied("a", 2), applied("a", 1)),
        "a pair back": (pair("a", 2), pair("a", 1)),
        "a pair back beside another": (pair("a", 2), pair("a", 3, "/l"), pair("a", 1)),
        "a number that no root wrote": (write("r", 0, 1), pair("a", 2)),
        "a pair that no root wrote": (write("r", 0, 1), pair("a", 1, value="w")),
        "a pair of another key": (write("r", 0, 1), pair("a", 1, "/l")),
        "a pair that no root wrote, after another": (write("r", 0, 1), write("r", 0, 2), pair("a", 2, value="w")),
        "to the beginning": (applied("a", 2), applied("a", 0)),
    },
    OwnNumbers: {
        "published first": (write("r", 1, 1), durable("r", 1, 1)),
        "never durable": (write("r", 1, 1),),
        "the next one": (durable("r", 1, 1), write("r", 1, 2)),
        "of another epoch": (durable("r", 1, 1), write("r", 2, 1)),
        "durable at another node": (durable("s", 1, 1), write("r", 1, 1)),
        "of another stream": (("r", "durable", "taken", [1, "r/1", 1, 9]), write("r", 1, 1)),
        "by a lost disk": (durable("r", 1, 1), disk("r"), write("r", 1, 1)),
        "a tick elsewhere first": (tick("b", "a", 1), tick("a", "a", 1)),
        "a tick elsewhere alone": (tick("b", "a", 1),),
        "the next tick": (tick("a", "a", 1), tick("b", "a", 2)),
        "another's tick": (tick("a", "a", 1), tick("c", "b", 1)),
        "a tick of a new name": (tick("a", "a", 1), tick("b", "a~2", 1)),
    },
}

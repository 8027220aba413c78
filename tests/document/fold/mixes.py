"""Random operations that meet each other: few names, so that edits collide, wait, revive and take each other back."""

import random
from collections.abc import Callable
from typing import Final, NamedTuple

BEGAN: Final = 1_763_800_000.0
EVENTS: Final = ("penalty", "pass", "lineup", "lead", "note")
ATTRIBUTES: Final = ("code", "points", "number", "q", "eid", "1x")
TEAMS: Final = ("home", "away", "official", "green")


def uuid_of(letter: str, number: int) -> str:
    """A UUID that a reader knows again."""
    return f"{letter}{number:07d}-0000-4000-8000-{number:012d}"


class Said(NamedTuple):
    """Everything of an operation but its stamp."""

    verb: str
    reference: str
    inner: str


class Mix:
    """A seed and what comes of it."""

    def __init__(self, seed: int, *, sources: int = 4, eids: int = 10, jams: int = 4, skew: float = 30.0) -> None:
        self.draw = random.Random(seed)
        self.sources = [uuid_of("abcdef"[number % 6], number + 1) for number in range(sources)]
        self.eids = [uuid_of("e", number + 1) for number in range(eids)]
        self.jams, self.skews = jams, [self.draw.uniform(-skew, skew) for _ in self.sources]
        self.sequences = [0] * sources
        self.now = BEGAN

    def bodies(self, count: int) -> list[bytes]:
        """So many operations, of each source in sequence."""
        return [self.body() for _ in range(count)]

    def body(self) -> bytes:
        """The next one, of anybody."""
        self.now += self.draw.choice((0.0, 0.25, 1.0, 20.0))
        at = self.draw.randrange(len(self.sources))
        self.sequences[at] += 1
        return self.stamped(self.said(), at, self.sequences[at])

    def stamped(self, said: Said, at: int, sequence: int, more: str = "") -> bytes:
        source = self.draw.choice((str.lower, str.upper, "{{{}}}".format, lambda text: text.replace("-", "")))(
            self.sources[at]
        )
        timestamp = self.timestamp(self.now + self.skews[at])
        stamp = f'source="{source}" timestamp="{timestamp}" sequence="{sequence}"{more}'
        return f"<{said.verb} {said.reference} {stamp}>{said.inner}</{said.verb}>".encode()

    def timestamp(self, value: float) -> str:
        """Now and then one that is none, or stands still, or goes back."""
        odd = self.draw.random()
        if odd < 0.04:
            return self.draw.choice(("nan", "1_000", "", "-5", "inf", "1e400", " 17638e5 "))
        return repr(round(value - (40.0 if odd > 0.96 else 0.0), 3))

    def said(self) -> Said:
        makers: list[tuple[int, Callable[[], Said]]] = [
            (5, self.event),
            (3, self.person),
            (2, self.jam),
            (3, self.words),
            (6, self.attribute),
            (3, self.named),
            (3, self.path),
            (3, self.remove),
            (1, self.action),
            (1, self.odd),
        ]
        weights, all_of_them = zip(*makers, strict=True)
        maker = self.draw.choices(all_of_them, weights)[0]
        made: Said = maker()
        return made

    # What people do

    def place(self) -> str:
        return f'period="{self.draw.choice("112")}" jam="{self.draw.randint(1, self.jams)}"'

    def eid(self) -> str:
        return self.draw.choice(self.eids)

    def maybe_eid(self) -> str:
        """Of what is made; some are spoken of long before, so that many wait for one."""
        known = self.eids[: 3 + sum(self.sequences) // 5]
        return f' eid="{self.draw.choice(known)}"' if self.draw.random() < 0.8 else ""

    def element(self, tag: str, depth: int = 0) -> str:
        inner = self.element(self.draw.choice(EVENTS), depth + 1) if depth < 2 and self.draw.random() < 0.3 else ""
        text = self.draw.choice(("", "x", "a &amp; b")) if self.draw.random() < 0.3 else ""
        return f'<{tag}{self.maybe_eid()} points="{self.draw.randint(0, 4)}">{text}{inner}</{tag}>'

    def event(self) -> Said:
        reference = self.place() if self.draw.random() < 0.8 else f'eid="{self.eid()}"'
        several = "".join(self.element(self.draw.choice(EVENTS)) for _ in range(self.draw.choice((1, 1, 2))))
        return Said("add", reference, several)

    def person(self) -> Said:
        said = f'number="{self.draw.randint(1, 4)}" name="n{self.draw.randint(1, 3)}"'
        return Said("add", f'team="{self.draw.choice(TEAMS)}"', f"<person{self.maybe_eid()} {said}/>")

    def jam(self) -> Said:
        number = self.draw.choice(("0", "x", *map(str, range(1, self.jams + 1))))
        said = f'<jam{self.maybe_eid()} number="{number}" timestamp="{self.draw.randint(1, 9)}">{self.element("note")}</jam>'
        return Said("add", f'period="{self.draw.choice("12")}"', said)

    def words(self) -> Said:
        return Said("add", f'eid="{self.eid()}"', self.draw.choice("uvw"))

    def attribute(self) -> Said:
        name = self.draw.choice(ATTRIBUTES)
        return Said("set", f'eid="{self.eid()}"', f"<attribute>{name}</attribute>{self.draw.randint(1, 4)}")

    def named(self) -> Said:
        reference = f'team="{self.draw.choice(TEAMS)}" person="{self.draw.choice(("1", "2", "3", "n1", "n2"))}"'
        if self.draw.random() < 0.5:
            reference = self.place()
        said = f'<attribute name="name">n{self.draw.randint(1, 3)}</attribute><attribute name="q">{self.draw.randint(1, 4)}</attribute>'
        return Said("set", reference, said)

    def path(self) -> Said:
        path = self.draw.choice(("", "/", "venue", "venue/city", "note", "a/b", "/bout", "period/jam"))
        verb = self.draw.choice(("set", "set", "add"))
        inner = self.element("venue") if verb == "add" and self.draw.random() < 0.5 else self.draw.choice("xyz")
        return Said(verb, f'path="{path}"', inner)

    def remove(self) -> Said:
        team = f'team="{self.draw.choice(TEAMS)}" person="{self.draw.randint(1, 3)}"'
        return Said(
            "remove",
            self.draw.choice((f'eid="{self.eid()}"', f'eid="{self.eid()}"', self.place(), 'path="venue"', team)),
            "",
        )

    def action(self) -> Said:
        steps = [
            step for step in (self.event(), self.attribute(), self.words(), self.remove()) if self.draw.random() < 0.6
        ]
        return Said("action", "", "".join(f"<{verb} {where}>{inner}</{verb}>" for verb, where, inner in steps) + "<x/>")

    def odd(self) -> Said:
        return self.draw.choice(
            (
                Said("move", f'eid="{self.eid()}"', ""),
                Said("set", "", "x"),
                Said("set", 'period="0"', "x"),
                Said("set", 'period="1" jam="01"', "x"),
                Said("add", 'path=""', '<x:y xmlns:x="u"/>'),
                Said("add", 'path=""', "<note>"),
                Said("remove", 'period="2" jam="777"', ""),
            )
        )

    # Copies of what somebody said who is gone

    def adopted(self, copies: int = 2) -> list[bytes]:
        """Copies of what a source said that nobody hears any more; now and then the original, too."""
        at = len(self.sources)
        self.sources.append(uuid_of("d", at + 100))
        self.skews.append(0.0)
        self.sequences.append(1)
        said, source = self.event(), self.sources[at]
        bodies = []
        for by in self.draw.sample(range(at), min(copies, at)):
            self.sequences[by] += 1
            bodies.append(self.stamped(said, by, self.sequences[by], f' origsource="{source}" origsequence="1"'))
        if self.draw.random() < 0.6:
            bodies.append(self.stamped(said, at, 1))
        return bodies

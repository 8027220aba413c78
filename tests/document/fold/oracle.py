"""The document as DOC-001 to DOC-056 read, and nothing else: sort everything, then fold from genesis, with no index, no
undo and no memory of what was before. Slow on purpose; it shares no line with the product, so that both can be wrong
only by the same reading. Schema `derby` and `plain`.
"""

import hashlib
import re
import uuid
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple
from xml.parsers import expat

DERIVED: Final = uuid.UUID("3d3d4c2a-8f1b-52de-adf9-cdbeba9ff019")
NUMBER: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
KEY: Final = re.compile(r"[1-9][0-9]*")
PARTS_MAX: Final = 8
LATEST: Final = 253_402_300_799.0
CREATED: Final = {("bout", "period"): ("number", 9), ("period", "jam"): ("number", 999)}
FIXED: Final = {("bout", "team"): "id"}
MATCHED: Final = {("team", "person"): ("number", "name")}
SINGLE: Final = {("jam", "lead")}
GENESIS: Final = '<bout ruleset="MAR2014"><team id="home"/><team id="away"/><team id="official"/><period number="1"/><period number="2"/></bout>'

Pair = tuple[bytes, int]
Both = tuple[tuple[Pair, str], tuple[Pair, str]]


class Element:
    """Of a payload, or of the document."""

    def __init__(self, tag: str, attributes: dict[str, str]) -> None:
        self.tag, self.attributes, self.text, self.data = tag, attributes, "", ""
        self.children: list[Element] = []
        self.parent: Element | None = None
        self.names: list[str] = []
        """Its eids."""
        self.is_fixed = False
        self.author: Pair = (b"", 0)
        self.writers: dict[str, tuple[Pair, float, str]] = {}

    def walk(self) -> "Iterator[Element]":
        yield self
        for child in self.children:
            yield from child.walk()


class Operation(NamedTuple):
    """As far as the fold needs it."""

    source: bytes
    sequence: int
    timestamp: float
    root: Element | None
    inert: str
    resolves: str
    origin: Pair | None

    @property
    def author(self) -> Pair:
        """Whose pair counts (DOC-013)."""
        return self.origin or (self.source, self.sequence)


class Result(NamedTuple):
    """What vectors and properties compare."""

    digest: str
    outcomes: dict[str, list[str]]
    parked: list[str]
    conflicts: list[dict[str, Any]]
    order: list[str]


class Parked(Exception):  # it is an outcome
    """A step waits: for an eid, for a tag, or for something to happen below an element."""

    def __init__(self, kind: str, what: Any) -> None:
        super().__init__(kind)
        self.event = (kind, what)


class Inert(Exception):  # it is an outcome
    """A step does nothing."""


# Reading


def tree_of(body: bytes) -> tuple[Element, bool]:
    """The first element of a body, as far as it can be read, and whether all of it can."""
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    open_ones: list[Element] = []
    first: list[Element] = []

    def begin(tag: str, attributes: dict[str, str]) -> None:
        element = Element(tag, attributes)
        (open_ones[-1].children if open_ones else first).append(element)
        open_ones.append(element)

    def data(text: str) -> None:
        open_ones[-1].data += text
        if not open_ones[-1].children:
            open_ones[-1].text += text

    def end(_: str) -> None:
        element = open_ones.pop()
        if element.children and not element.text.strip(" \t\r\n"):
            element.text = ""

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = begin, end, data
    try:
        parser.Parse(body, True)
    except expat.ExpatError:
        return first[0], False
    return first[0], True


def read(body: bytes) -> Operation:
    """An operation whose header can be read."""
    root, is_whole = tree_of(body)
    said = root.attributes
    inert = "" if is_whole else "malformed"
    names = [name for element in root.walk() for name in (element.tag, *element.attributes)]
    if not inert and not all(NAME.fullmatch(name) and name != "xmlns" for name in names):
        inert = "name"
    if not inert and root.tag not in ("add", "set", "remove", "action"):
        inert = "verb"
    origin = None
    if "origsource" in said and "origsequence" in said:
        origin = (uuid.UUID(said["origsource"].strip()).bytes, int(said["origsequence"]))
    source = uuid.UUID(said["source"].strip()).bytes
    return Operation(
        source,
        int(said["sequence"]),
        timestamp_of(said.get("timestamp", "")),
        root,
        inert,
        said.get("resolves", "").strip(),
        origin,
    )


def timestamp_of(text: str) -> float:
    """DOC-011."""
    text = text.strip()
    value = float(text) if NUMBER.fullmatch(text) else 0.0
    return min(value, LATEST) if value > 0 else 0.0


# Order


def ordered(operations: Iterable[Operation]) -> list[tuple[float, bytes, int, Operation]]:
    """DOC-010, DOC-012: of each source what has no gap before it, by effective time, source, sequence."""
    known: dict[Pair, Operation] = {}
    for operation in operations:
        known.setdefault((operation.source, operation.sequence), operation)
    entries = []
    for source in sorted({source for source, _ in known}):
        eff, sequence = 0.0, 1
        while (operation := known.get((source, sequence))) is not None:  # type: ignore[assignment]  # a name twice
            eff = max(eff, operation.timestamp)
            entries.append((eff, source, sequence, operation))
            sequence += 1
    return sorted(entries, key=lambda entry: entry[:3])


def superseded(entries: list[tuple[float, bytes, int, Operation]]) -> set[Pair]:
    """DOC-013."""
    here = {(source, sequence) for _, source, sequence, _ in entries}
    counted: set[Pair] = set(here)
    lost: set[Pair] = set()
    for _, source, sequence, operation in entries:
        origin = operation.origin
        if origin is None or operation.inert or origin == (source, sequence):
            continue
        if origin in counted:
            lost.add((source, sequence))
        counted.add(origin)
    return lost


def name_of(pair: Pair) -> str:
    """As vectors write it."""
    return f"{uuid.UUID(bytes=pair[0])}/{pair[1]}"


def eid_of(text: str) -> str:
    """DOC-020: canonical if it is a UUID, else as it is."""
    try:
        return str(uuid.UUID(text))
    except ValueError:
        return text


def result_of(operations: Iterable[Operation], schema: str = "derby") -> Result:
    """The document of any operations."""
    entries = ordered(operations)
    lost = superseded(entries)
    oracle = Oracle(schema)
    for eff, source, sequence, operation in entries:
        oracle.apply(operation, eff, is_superseded=(source, sequence) in lost)
    return Result(
        hashlib.sha256(canonical(oracle.root).encode()).hexdigest(),
        {name_of(pair): outcomes for pair, outcomes in oracle.outcomes.items()},
        sorted({name_of(step.pair) for step in oracle.waiting}),
        oracle.conflicts,
        [name_of((source, sequence)) for _, source, sequence, _ in entries],
    )


def canonical(element: Element) -> str:
    """DOC-050."""
    text = element.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#xD;")
    said = "".join(f' {name}="{_quoted(value)}"' for name, value in sorted(element.attributes.items()))
    return f"<{element.tag}{said}>{text}{''.join(map(canonical, element.children))}</{element.tag}>"


def _quoted(value: str) -> str:
    value = value.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")
    return value.replace("\t", "&#x9;").replace("\n", "&#xA;").replace("\r", "&#xD;")


class Step(NamedTuple):
    """One of an operation, perhaps waiting."""

    key: tuple[float, bytes, int, int]
    element: Element
    operation: Operation
    prefix: str
    """Of the index in derived eids: `t.` in an action."""
    event: tuple[str, Any] | None = None

    @property
    def pair(self) -> Pair:
        return self.operation.source, self.operation.sequence


class Oracle:
    """The fold of one schema."""

    def __init__(self, schema: str) -> None:
        self.root = tree_of(GENESIS.encode() if schema == "derby" else b"<doc/>")[0]
        for element in self.root.walk():
            element.is_fixed = True
            for child in element.children:
                child.parent = element
        self.live: dict[str, Element] = {}
        self.removed: dict[str, Pair] = {}
        self.waiting: list[Step] = []
        self.outcomes: dict[Pair, list[str]] = {}
        self.conflicts: list[dict[str, Any]] = []
        self.events: list[tuple[str, Any]] = []
        self.grafted = 0
        """How much the present step made."""
        self.place: Element | None = None
        """What the present step leads to, if that was there before."""
        self.places: dict[str, Element | None] = {}
        """Of conflicts: the element of the slot."""

    # Operations and steps

    def apply(self, operation: Operation, eff: float, *, is_superseded: bool) -> None:
        """DOC-034, DOC-035."""
        pair = (operation.source, operation.sequence)
        reason = "superseded" if is_superseded else operation.inert
        if reason:
            self.outcomes[pair] = [f"inert:{reason}"]
            return
        assert operation.root is not None
        steps = [Step((eff, *pair, 0), operation.root, operation, "")]
        if operation.root.tag == "action":
            children = operation.root.children
            steps = [Step((eff, *pair, at), child, operation, f"{at}.") for at, child in enumerate(children)]
            steps = [step for step in steps if step.element.tag in ("add", "set", "remove")]
        self.outcomes[pair] = []
        for step in steps:
            self.outcomes[pair].append(self.attempt(step))
        self.release()

    def attempt(self, step: Step) -> str:
        """Do a step, or let it wait."""
        self.grafted, self.place = 0, None
        try:
            return self.settle(step, getattr(self, f"do_{step.element.tag}")(step) or "applied")
        except Parked as parked:
            self.waiting.append(step._replace(event=parked.event))
            return "parked"
        except Inert as inert:
            return f"inert:{inert}"

    def settle(self, step: Step, outcome: str) -> str:
        """Close a conflict of two siblings, if the step is at it."""
        place = self.place
        if place is None or outcome not in ("applied", "inert:nothing-new"):
            return outcome
        for conflict in self.conflicts:
            is_meant = conflict["id"] == step.operation.resolves and conflict["open"]
            if not is_meant or conflict["kind"] not in ("duplicate-key", "single"):
                continue
            if self.is_at(conflict, place) or (place.parent is not None and self.is_at(conflict, place.parent)):
                conflict["open"] = False
                return "applied"
        return outcome

    def release(self) -> None:
        """DOC-021: rounds of steps whose events have come, each round in order of keys."""
        while self.events:
            events, self.events = self.events, []
            ready = sorted((step for step in self.waiting if step.event in events), key=lambda step: step.key)
            self.waiting = [step for step in self.waiting if step.event not in events]
            for step in ready:
                self.attempt(step)

    # References

    def target(self, step: Step) -> Element:
        """DOC-020."""
        found = self.find(step)
        self.place = None if self.grafted else found
        return found

    def find(self, step: Step) -> Element:
        said = {name: value.strip() for name, value in step.element.attributes.items()}
        if "eid" in said:
            return self.by_eid(eid_of(said["eid"]), step)
        if "path" in said:
            return self.by_path(said["path"], step)
        if self.root.tag == "bout" and "period" in said:
            return self.by_period(said, step)
        if self.root.tag == "bout" and "team" in said:
            return self.by_team(said)
        raise Inert("no-reference")

    def by_eid(self, eid: str, step: Step) -> Element:
        if eid in self.live:
            return self.live[eid]
        if eid not in self.removed:
            raise Parked("eid", eid)
        slot, is_mended = f"eid:{eid}", False
        for conflict in self.conflicts:
            is_meant = conflict["id"] == step.operation.resolves and conflict["open"]
            if is_meant and (conflict["kind"], conflict["slot"]) == ("lost-edit", slot):
                conflict["open"], is_mended = False, True
        if not is_mended and self.removed[eid][0] != step.operation.author[0]:
            here = (step.operation.author, "")
            self.conflict("lost-edit", slot, step.element.tag, ((self.removed[eid], ""), here))
        raise Inert("target-removed")

    def by_path(self, path: str, step: Step) -> Element:
        bare = path.strip("/")
        parts = [] if bare in ("", self.root.tag) else bare.split("/")
        if len(parts) > PARTS_MAX or not all(map(NAME.fullmatch, parts)):
            raise Inert("bad-path")
        at = self.root
        for index, part in enumerate(parts):
            child = next((child for child in at.children if child.tag == part), None)
            if child is None:
                is_keyed = (at.tag, part) in CREATED or (at.tag, part) in FIXED or (at.tag, part) in MATCHED
                if step.element.tag != "set" or index < len(parts) - 1 or is_keyed:
                    raise Parked("tag", part)
                child = self.insert(Element(part, {}), at, len(at.children), step)
                self.grafted += 1
            at = child
        return at

    def by_period(self, said: dict[str, str], step: Step) -> Element:
        for name, most in (("period", 9), ("jam", 999)):
            if name in said and not (KEY.fullmatch(said[name]) and int(said[name]) <= most):
                raise Inert("bad-key")
        at = self.root
        for name in ("period", "jam"):
            if name in said:
                child = self.keyed(at, name, "number", said[name])
                if child is None and step.element.tag == "remove":
                    raise Inert("absent")
                at = child or self.create(at, name, said[name], step)
        return at

    def by_team(self, said: dict[str, str]) -> Element:
        team = self.keyed(self.root, "team", "id", said["team"])
        if team is None:
            raise Inert("unknown-team")
        if "person" not in said:
            return team
        for name in ("number", "name"):
            person = self.keyed(team, "person", name, said["person"])
            if person is not None:
                return person
        raise Parked("below", team)

    def keyed(self, parent: Element, tag: str, name: str, key: str) -> Element | None:
        return next((each for each in parent.children if each.tag == tag and each.attributes.get(name) == key), None)

    def create(self, parent: Element, tag: str, key: str, step: Step) -> Element:
        """Of a creatable chain: before the first of a larger number."""
        larger = (
            index
            for index, child in enumerate(parent.children)
            if child.tag == tag and int(child.attributes["number"]) > int(key)
        )
        element = Element(tag, {"number": key})
        element.is_fixed = tag == "period"
        self.grafted += 1
        return self.insert(element, parent, next(larger, len(parent.children)), step)

    def insert(self, element: Element, parent: Element, index: int, step: Step) -> Element:
        element.parent, element.author = parent, step.operation.author
        parent.children.insert(index, element)
        self.events += [("tag", element.tag), ("below", parent)]
        return element

    # Verbs

    def do_add(self, step: Step) -> str:
        """DOC-030, DOC-031."""
        target = self.target(step)
        target.text += step.element.text
        for index, payload in enumerate(step.element.children):
            pair = name_of(step.operation.author)
            for k, element in enumerate(payload.walk()):
                given = eid_of(element.attributes.get("eid", "").strip())
                element.names = [given or str(uuid.uuid5(DERIVED, f"{pair}/{step.prefix}{index}/{k}"))]
            self.graft(payload, target, step)
        has_new = step.element.text or self.grafted
        return "applied" if has_new else "inert:nothing-new"

    def graft(self, payload: Element, parent: Element, step: Step) -> None:
        (eid,) = payload.names
        if eid in self.live:
            return
        said = {name: value for name, value in payload.attributes.items() if name != "eid"}
        place = (parent.tag, payload.tag)
        if place in CREATED or place in FIXED:
            element = self.merge(payload, said, parent, step)
            if element is None:
                return
        else:
            element = Element(payload.tag, {**said, "eid": eid})
            element.text = payload.text
            self.insert(element, parent, len(parent.children), step)
            self.look_for_twins(element, element.author)
            self.look_for_second(element)
        self.name(element, eid)
        self.grafted += 1
        for child in payload.children:
            self.graft(child, element, step)

    def name(self, element: Element, eid: str) -> None:
        element.names.append(eid)
        element.attributes.setdefault("eid", eid)
        self.live[eid] = element
        self.removed.pop(eid, None)
        self.events.append(("eid", eid))

    def merge(self, payload: Element, said: dict[str, str], parent: Element, step: Step) -> Element | None:
        place = (parent.tag, payload.tag)
        attribute, most = CREATED.get(place) or (FIXED[place], 0)
        key = said.pop(attribute, "").strip()
        if most and not (KEY.fullmatch(key) and int(key) <= most):
            return None
        element = self.keyed(parent, payload.tag, attribute, key)
        if element is None:
            if not most:
                return None
            element = self.create(parent, payload.tag, key, step)
        for name, value in said.items():
            self.write(element, name, value, step)
        element.text += payload.text
        return element

    def do_set(self, step: Step) -> str:
        """DOC-032."""
        data = step.element.data
        children = [child for child in step.element.children if child.tag == "attribute"]
        named = [child for child in children if "name" in child.attributes]
        target_of = self.target
        if named:
            writes = [(child.attributes["name"].strip(), child.data.strip()) for child in named]
        elif children:
            writes = [(children[0].data.strip(), data.strip())]
        elif "attribute" in step.element.attributes:
            writes = [(step.element.attributes["attribute"].strip(), data.strip())]
        else:
            target = target_of(step)
            self.write(target, "#text", data, step)
            return "applied"
        target = target_of(step)
        good = [(name, value) for name, value in writes if self.is_settable(target, name)]
        for name, value in good:
            self.write(target, name, value, step)
        return "applied" if good else "inert:bad-attribute"

    def is_settable(self, target: Element, name: str) -> bool:
        keys = {tag: key for (_, tag), (key, _) in CREATED.items()} | {tag: key for (_, tag), key in FIXED.items()}
        is_key = self.root.tag == "bout" and keys.get(target.tag) == name
        return name not in ("eid", "xmlns") and NAME.fullmatch(name) is not None and not is_key

    def write(self, element: Element, name: str, value: str, step: Step) -> None:
        author, eff = step.operation.author, step.key[0]
        last = element.writers.get(name)
        is_mended = self.close(step.operation.resolves, element, name)
        is_other = last is not None and last[0][0] != author[0] and last[2] != value and abs(last[1] - eff) <= 60
        if last is not None and is_other and not is_mended:
            self.conflict("set-set", self.slot(element), name, ((last[0], last[2]), (author, value)), element)
        element.writers[name] = (author, eff, value)
        if name == "#text":
            element.text = value
            return
        element.attributes[name] = value
        if element.parent is not None:
            self.look_for_twins(element, author, name)
            self.events.append(("below", element.parent))

    def do_remove(self, step: Step) -> str:
        """DOC-033."""
        target = self.target(step)
        if target.is_fixed or target.parent is None:
            raise Inert("fixed")
        target.parent.children.remove(target)
        for element in target.walk():
            for eid in element.names:
                self.removed[eid] = step.operation.author
                del self.live[eid]
        return "applied"

    # Conflicts (DOC-040)

    def slot(self, element: Element) -> str:
        return f"eid:{element.attributes['eid']}" if "eid" in element.attributes else self.path(element) or "/"

    def path(self, element: Element) -> str:
        if element.parent is None:
            return ""
        place = (element.parent.tag, element.tag)
        if place in CREATED or place in FIXED:
            key = element.attributes["number" if place in CREATED else "id"]
        elif place in MATCHED and MATCHED[place][0] in element.attributes:
            key = element.attributes[MATCHED[place][0]]
        else:
            same = [child for child in element.parent.children if child.tag == element.tag]
            key = f"#{same.index(element) + 1 if element in same else 0}"
        return f"{self.path(element.parent)}/{element.tag}[{key}]"

    def look_for_twins(self, element: Element, author: Pair, written: str = "number") -> None:
        """A key that another's sibling has already."""
        parent = element.parent
        assert parent is not None
        keys = MATCHED.get((parent.tag, element.tag))
        if keys is None or keys[0] != written or written not in element.attributes:
            return
        key = element.attributes[written]
        for child in parent.children:
            is_twin = child.tag == element.tag and child is not element and child.attributes.get(written) == key
            if is_twin and child.author[0] != author[0]:
                self.conflict("duplicate-key", self.slot(parent), written, ((child.author, key), (author, key)), parent)
                return

    def look_for_second(self, element: Element) -> None:
        """Of what there should be one."""
        parent = element.parent
        assert parent is not None
        if (parent.tag, element.tag) in SINGLE:
            for child in parent.children:
                if child.tag == element.tag and child.author[0] != element.author[0]:
                    first, second = (child.author, self.slot(child)), (element.author, self.slot(element))
                    self.conflict("single", self.slot(parent), element.tag, (first, second), parent)
                    return

    def conflict(self, kind: str, slot: str, attr: str, both: Both, place: Element | None = None) -> None:
        words = f"{kind} {name_of(both[0][0])} {name_of(both[1][0])} {attr}"
        name = hashlib.sha256(words.encode()).hexdigest()[:16]
        if any(each["id"] == name for each in self.conflicts):
            return
        parties = [[str(uuid.UUID(bytes=pair[0])), pair[1], value] for pair, value in both]
        said = {"id": name, "kind": kind, "slot": slot, "attr": attr, "first": parties[0], "second": parties[1]}
        self.conflicts.append({**said, "open": True})
        self.places[name] = place

    def is_at(self, conflict: dict[str, Any], element: Element) -> bool:
        return self.places[conflict["id"]] is element or conflict["slot"] == self.slot(element)

    def close(self, name: str, element: Element, attr: str) -> bool:
        """Close a set-set of this element; whether it was one of this value."""
        for conflict in self.conflicts:
            if (
                conflict["id"] == name
                and conflict["open"]
                and conflict["kind"] == "set-set"
                and self.is_at(conflict, element)
            ):
                conflict["open"] = False
                return bool(conflict["attr"] == attr)
        return False

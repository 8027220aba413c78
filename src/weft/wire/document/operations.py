"""Operations in XML: one element of bytes is one entry of the log (GSP-001, GSP-012, DOC-034).

    <add period="1" jam="3" source="a0…01" timestamp="1763800000.25" sequence="7"><penalty eid="e1…01" code="B"/></add>

What the first start tag says is the header: without one the bytes are refused. What is wrong behind it makes the operation
`inert`: it keeps its number, so that nobody can block its own source, and does nothing.
"""

import re
from functools import lru_cache
from hashlib import sha1
from typing import Any, Final, NamedTuple

from weft.base.errors import PeerError
from weft.wire.document.messages import OPERATION_BYTES_MAX
from weft.wire.document.xml import (
    DEPTH_MAX,
    EID,
    ELEMENTS_MAX,
    WHITE,
    Malformed,
    Node,
    Payload,
    Read,
    are_names,
    behind_first_tag,
    escaped_root_value,
    escaped_text,
    escaped_value,
    first_tag,
    is_name,
    is_sayable,
    read,
    written,
)
from weft.wire.document.xml import fragment_of as fragment_of  # noqa: PLC0414  # it belongs to both

SEQUENCE_MAX: Final = (1 << 53) - 1  # GSP-012
SEQUENCE_DIGITS: Final = 16
UUID_CHARACTERS_MAX: Final = 38  # with hyphens and braces; longer text is no UUID, and takes no place in the cache
TIMESTAMP_MAX: Final = 253_402_300_799.0  # tidy: the wire has seconds as doubles; the year 9999 (DOC-011)
PATH_PARTS_MAX: Final = 8  # DOC-020
ADD, SET, REMOVE, ACTION = "add", "set", "remove", "action"
VERBS: Final = frozenset((ADD, SET, REMOVE))
TEXT: Final = "#text"
"""Stands for the text of an element where the name of an attribute could stand."""
STAMPS: Final = (
    "source",
    "timestamp",
    "sequence",
    "by",
    "resolves",
    "undoes",
    "origsource",
    "origsequence",
    "origbody",
    "prev",
)
SUM: Final = "crc32"
"""The checksum of the body (sums.py)."""
SEALS: Final = ("key", "sig", SUM)
NAMESPACE: Final = bytes.fromhex("3d3d4c2a8f1b52deadf9cdbeba9ff019")
"""Of eids that nobody gave (DOC-031)."""
_STAMPS: Final = frozenset((*STAMPS, *SEALS))

_TIMESTAMP: Final = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+)?", re.ASCII)
_SEQUENCE: Final = re.compile(rf"[0-9]{{1,{SEQUENCE_DIGITS}}}")
_UUID: Final = re.compile(r"\{?([0-9a-f]{8})(-?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})\}?")


_PLAIN: Final = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
"""A UUID as it is written."""


# Words


def uuid_of(text: str) -> bytes | None:
    """The 16 bytes of a UUID in any of its spellings (PEE-005); None if it is none.

    >>> uuid_of("{E1000000-0000-4000-8000-000000000001}") == uuid_of("e1000000000040008000000000000001")
    True
    """
    return _uuid_of(text) if len(text) <= UUID_CHARACTERS_MAX else None


@lru_cache(maxsize=4_096)
def _uuid_of(text: str) -> bytes | None:
    found = _UUID.fullmatch(text.lower()) if text.isascii() else None
    if found is None or text.startswith("{") != text.endswith("}"):
        return None
    return bytes.fromhex("".join(found.group(1, 3, 4, 5, 6)))


@lru_cache(maxsize=4_096)
def uuid_text(uuid: bytes) -> str:
    """A UUID as it is written: lower case, with hyphens."""
    digits = uuid.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def eid_of(text: str) -> str:
    """An eid as it is compared: trimmed, and a UUID in its standard spelling (DOC-020)."""
    if _PLAIN.fullmatch(text) is not None:
        return text
    eid = text.strip(WHITE)
    uuid = uuid_of(eid)
    return eid if uuid is None else uuid_text(uuid)


def timestamp_of(text: str) -> float:
    """Seconds (DOC-011): 0.0 for whatever is no positive decimal number, and never beyond the year 9999.

    >>> [timestamp_of(text) for text in (" 1.5 ", "nan", "1_000", "-1", "1e999")]
    [1.5, 0.0, 0.0, 0.0, 253402300799.0]
    """
    found = _TIMESTAMP.fullmatch(text.strip(WHITE))
    if found is None:
        return 0.0  # tidy: as above
    return min(max(float(found[0]), 0.0), TIMESTAMP_MAX)  # tidy: as above


def timestamp_text(value: float) -> str:  # tidy: as above
    """The shortest decimal that is read back as the same double."""
    return repr(value)


def derived_eid(source: bytes, sequence: int, place: str) -> str:
    """The eid of a payload element that has none: uuid5 of `source/sequence/place` (DOC-031).

    >>> derived_eid(bytes.fromhex("a0000000000040008000000000000001"), 1, "0/0")
    '4555cf48-271e-5f2b-96af-b43e0929b9c9'
    """
    return _derived(f"{uuid_text(source)}/{sequence}/", place)


def _derived(pair: str, place: str) -> str:
    digits = sha1(NAMESPACE + (pair + place).encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}"


# Reading


class Header(NamedTuple):
    """The contents of the first start tag."""

    verb: str
    source: bytes
    sequence: int
    timestamp: str
    attributes: dict[str, str]


class Step:
    """One thing to do: an operation is one step, an `action` has several (DOC-034)."""

    __slots__ = ("attributes", "eid", "index", "is_sound", "path", "payload", "picks", "text", "verb", "writes")

    def __init__(self, index: int, verb: str, attributes: dict[str, str]) -> None:
        self.index, self.verb, self.attributes = index, verb, attributes
        self.eid = eid_of(attributes[EID]) if EID in attributes else None
        self.path = attributes["path"].strip(WHITE) if "path" in attributes else None
        """The reference, if it is one of these (DOC-020); else the schema looks at the attributes."""
        self.picks: Any = None
        """Whoever resolves the reference keeps here what it found."""
        self.text = ""
        """Of `add`: the text to append."""
        self.payload: list[Node] = []
        self.writes: list[tuple[str, str]] = []
        """Of `set`: names (or TEXT) and values."""
        self.is_sound = True
        """Whether all names may be set, as far as names alone tell (DOC-032)."""


class Operation:
    """One entry of the log. It is never changed, so folds share it."""

    __slots__ = (
        "attributes",
        "by",
        "inert",
        "origin",
        "raw_timestamp",
        "resolves",
        "sequence",
        "size",
        "source",
        "steps",
        "timestamp",
        "undoes",
        "verb",
    )

    def __init__(self, header: Header, size: int) -> None:
        self.verb, self.source, self.sequence, self.raw_timestamp, attributes = header
        self.attributes = attributes
        self.timestamp = timestamp_of(self.raw_timestamp)
        """Seconds (DOC-011)."""
        self.by = attributes.get("by", "")
        self.resolves = attributes["resolves"].strip(WHITE) if "resolves" in attributes else ""
        self.undoes = _undone_of(attributes["undoes"]) if "undoes" in attributes else None
        """The operation that this one takes back (DOC-055): source and sequence."""
        self.origin = _origin_of(attributes) if "origsource" in attributes else None
        """The operation of which this is an adopted copy (DOC-013): source and sequence."""
        self.size = size
        self.inert = ""
        """Why it does nothing, as far as its bytes tell: `malformed`, `name`, `verb`, `depth`, `size`."""
        self.steps: list[Step] = []

    @property
    def pair(self) -> tuple[bytes, int]:
        """The source and sequence under which it counts: its own, or those of the original."""
        return self.origin or (self.source, self.sequence)

    @property
    def reference(self) -> dict[str, str]:
        """The attributes of the root that are no stamp."""
        return {name: value for name, value in self.attributes.items() if name not in _STAMPS}

    @property
    def text(self) -> str:
        """Text of the only step."""
        return self.steps[0].text if len(self.steps) == 1 else ""

    @property
    def payload(self) -> list[Node]:
        """Payload of the only step."""
        return self.steps[0].payload if len(self.steps) == 1 else []


def header_of(body: bytes) -> Header:
    """The contents of the first start tag, whatever follows it; PeerError `no-header` (GSP-012)."""
    if len(body) > OPERATION_BYTES_MAX:
        raise PeerError("no-header", f"{len(body)} bytes", body)
    try:
        tag, attributes = first_tag(body)
    except Malformed as error:
        raise PeerError("no-header", str(error), body) from None
    return _header(tag, attributes, body)


def _header(tag: str, attributes: dict[str, str], body: bytes) -> Header:
    source = uuid_of(attributes.get("source", ""))
    digits = attributes.get("sequence", "")
    if source is None or _SEQUENCE.fullmatch(digits) is None or not 1 <= int(digits) <= SEQUENCE_MAX:
        raise PeerError("no-header", "source and sequence", body)
    return Header(tag, source, int(digits), attributes.get("timestamp", ""), attributes)


def _origin_of(attributes: dict[str, str]) -> tuple[bytes, int] | None:
    source, digits = uuid_of(attributes["origsource"]), attributes.get("origsequence", "")
    if source is None or _SEQUENCE.fullmatch(digits) is None or not 1 <= int(digits) <= SEQUENCE_MAX:
        return None
    return source, int(digits)


def _undone_of(text: str) -> tuple[bytes, int] | None:
    front, _, digits = text.strip(WHITE).partition("/")
    source = uuid_of(front)
    if source is None or _SEQUENCE.fullmatch(digits) is None or not 1 <= int(digits) <= SEQUENCE_MAX:
        return None
    return source, int(digits)


def parse(body: bytes) -> Operation:
    """The operation in these bytes; PeerError `no-header` as in `header_of`, and no other error.

    Time and memory: O(len(body)).
    """
    if len(body) > OPERATION_BYTES_MAX:
        raise PeerError("no-header", f"{len(body)} bytes", body)
    try:
        found = read(body)
    except Malformed as error:
        if error.root is None:
            raise PeerError("no-header", str(error), body) from None
        operation = Operation(_header(error.root.tag, error.root.attributes, body), len(body))
        operation.inert = "malformed"
        return operation
    root = found.root
    operation = Operation(_header(root.tag, root.attributes, body), len(body))
    operation.inert = _fault(operation.verb, found)
    if not operation.inert:
        _take_steps(operation, root)
    return operation


def _fault(verb: str, found: Read) -> str:
    """Why an operation that is well formed does nothing."""
    if not are_names(found.names):
        return "name"
    if verb not in VERBS and verb != ACTION:
        return "verb"
    if found.deepest - (verb == ACTION) > DEPTH_MAX:
        return "depth"
    return "size" if found.elements > ELEMENTS_MAX else ""


def _take_steps(operation: Operation, root: Node) -> None:
    """Collect the steps, in order; unknown children of an `action` have a number and do nothing (DOC-034)."""
    pair = operation.origin or (operation.source, operation.sequence)
    if operation.verb != ACTION:
        operation.steps.append(_step_of(0, root, pair, ""))
        return
    for index, child in enumerate(root.children):
        if child.tag in VERBS:
            operation.steps.append(_step_of(index, child, pair, f"{index}."))


def _step_of(index: int, node: Node, pair: tuple[bytes, int], place: str) -> Step:
    step = Step(index, node.tag, node.attributes)
    if node.tag == ADD:
        step.text = node.text
        step.payload = node.children
        if step.payload:
            _name_all(step.payload, pair, place)
    elif node.tag == SET:
        step.writes = _writes_of(node)
        step.is_sound = all(name == TEXT or (name != EID and is_name(name)) for name, _ in step.writes)
    return step


def _name_all(payload: list[Node], pair: tuple[bytes, int], place: str) -> None:
    """Give each element of a payload its eid: its own in the standard spelling, or the derived one."""
    prefix = ""
    for i, top in enumerate(payload):
        k = 0
        todo = [top]
        while todo:
            node = todo.pop()
            given = node.attributes.get(EID)
            eid = eid_of(given) if given else ""
            if not eid:
                prefix = prefix or f"{uuid_text(pair[0])}/{pair[1]}/"
                eid = _derived(prefix, f"{place}{i}/{k}")
            node.attributes[EID] = eid
            k += 1
            if node.children:
                todo.extend(reversed(node.children))


def _writes_of(node: Node) -> list[tuple[str, str]]:
    """The names and values that a `set` sets (DOC-032)."""
    named = [
        (child.attributes["name"].strip(WHITE), child.data.strip(WHITE))
        for child in node.children
        if child.tag == "attribute" and "name" in child.attributes
    ]
    if named:
        return named
    for child in node.children:
        if child.tag == "attribute":
            return [(child.data.strip(WHITE), node.data.strip(WHITE))]
    if "attribute" in node.attributes:
        return [(node.attributes["attribute"].strip(WHITE), node.data.strip(WHITE))]
    return [(TEXT, node.data)]


# Writing


class Stamp(NamedTuple):
    """Author, time and number, and what else the root tag may contain, in the order of GSP-001."""

    source: bytes
    timestamp: float  # tidy: as above
    sequence: int
    by: str = ""
    resolves: str = ""
    origin: tuple[bytes, int] | None = None
    """The operation of which this is an adopted copy."""
    origbody: str = ""
    prev: str = ""
    key: str = ""
    sig: str = ""
    undoes: str = ""
    """`SOURCE/N` of an operation that this one takes back (DOC-055)."""


def emit(verb: str, reference: dict[str, str], stamp: Stamp, payload: Payload = Payload()) -> bytes:  # noqa: B008  # it is empty and stays so
    """The bytes of an operation (GSP-001): the same for the same arguments, and `parse` gives them back.

    Elements without an eid get the derived one (GSP-004). PeerError `bad-xml` for what XML cannot say. How long it may be
    is for the caller to judge (GSP-013).
    """
    root = [f' {name}="{escaped_root_value(value)}"' for name, value in reference.items()]
    root += [f' {name}="{escaped_root_value(value)}"' for name, value in _stamped(stamp) if value]
    inner = _inner(verb, stamp, payload)
    body = f"<{verb}{''.join(root)}>{inner}</{verb}>" if inner else f"<{verb}{''.join(root)}/>"
    if not is_sayable(body) or not all(map(is_name, reference)):
        raise PeerError("bad-xml", "a character or a name that XML has not", body.encode("utf-8", "replace"))
    return body.encode()


def step_of(verb: str, reference: dict[str, str], payload: Payload) -> Node:
    """One of several things that an `action` does (DOC-034)."""
    if verb != SET or not payload.attributes:
        return Node(verb, reference, payload.text, payload.nodes)
    named = [Node("attribute", {"name": name}, value) for name, value in payload.attributes.items()]
    return Node(verb, reference, "", named)


def adopted(body: bytes, source: bytes, sequence: int) -> bytes:
    """Another source's operation, written as one of this source (GSP-040): the same root, reference, payload and timestamp.

    It names the original; a copy of a copy names the first. PeerError `no-header` for what is no operation.
    """
    operation = parse(body)
    origin = operation.origin or (operation.source, operation.sequence)
    attributes = {name: value for name, value in operation.attributes.items() if name not in _STAMPS}
    attributes |= {"source": uuid_text(source), "timestamp": operation.raw_timestamp, "sequence": str(sequence)}
    attributes |= {
        name: operation.attributes[name] for name in ("by", "resolves", "undoes") if name in operation.attributes
    }
    attributes |= {"origsource": uuid_text(origin[0]), "origsequence": str(origin[1])}
    rest, is_ended = behind_first_tag(body)
    words = "".join(f' {name}="{escaped_root_value(value)}"' for name, value in attributes.items())
    return f"<{operation.verb}{words}{'/' if is_ended else ''}>".encode() + rest


def _stamped(stamp: Stamp) -> list[tuple[str, str]]:
    origin = stamp.origin
    return [
        ("source", uuid_text(stamp.source)),
        ("timestamp", timestamp_text(stamp.timestamp)),
        ("sequence", str(stamp.sequence)),
        ("by", stamp.by),
        ("resolves", stamp.resolves),
        ("undoes", stamp.undoes),
        ("origsource", uuid_text(origin[0]) if origin else ""),
        ("origsequence", str(origin[1]) if origin else ""),
        ("origbody", stamp.origbody),
        ("prev", stamp.prev),
        ("key", stamp.key),
        ("sig", stamp.sig),
    ]


def _inner(verb: str, stamp: Stamp, payload: Payload) -> str:
    """What stands between the root's tags."""
    if verb == ACTION:
        return written(payload.nodes)  # steps of an `action`: their attributes are references, so no eids are derived
    if verb != SET:
        return escaped_text(payload.text) + written(_with_eids(payload.nodes, stamp))
    if not payload.attributes:
        return escaped_text(payload.text) + written(payload.nodes)
    if len(payload.attributes) == 1:
        ((name, value),) = payload.attributes.items()
        return f"<attribute>{escaped_text(name)}</attribute>{escaped_text(value)}"
    return "".join(
        f'<attribute name="{escaped_value(name)}">{escaped_text(value)}</attribute>'
        for name, value in payload.attributes.items()
    )


def _with_eids(nodes: list[Node], stamp: Stamp) -> list[Node]:
    """Copies in which every element has an eid."""
    copies = [_copy_of(node) for node in nodes]
    _name_all(copies, stamp.origin or (stamp.source, stamp.sequence), "")
    return copies


def _copy_of(node: Node) -> Node:
    """A deep copy; a payload is at most DEPTH_MAX deep."""
    return Node(node.tag, dict(node.attributes), node.text, [_copy_of(child) for child in node.children])

"""XML as documents use it (DOC-001, DOC-050): what a namespace-unaware parser of XML 1.0 reports, and its canonical form.

An element is a tag, attributes, text and children. Its text is what stands before its first child; comments, processing
instructions and what stands behind a child are passed over. No entity, DTD or other resource is ever loaded: a DOCTYPE is
refused before it is read (GSP-012, GSP-055).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import Any, Final, NamedTuple, Protocol
from xml.parsers import expat

from weft.base.errors import PeerError
from weft.wire.document.messages import OPERATION_BYTES_MAX

DEPTH_MAX: Final = 64  # of the elements that one operation carries (DOC-002)
ELEMENTS_MAX: Final = 10_000  # of them
TREE_DEPTH_MAX: Final = 256  # of a document
TREE_ELEMENTS_MAX: Final = 1_000_000
LOST_SHOWN: Final = 40  # characters that a message repeats
NAMES_KEPT: Final = 4_096  # names that are known to be good; a session has some dozens

WHITE: Final = " \t\r\n"
"""White space of XML, and no other: so all machines trim alike."""
NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,127}")
EID: Final = "eid"
_good: set[str] = set()
"""Names that were checked before."""


class Node:
    """An element that belongs to no document."""

    __slots__ = ("attributes", "children", "data", "tag", "text")

    def __init__(
        self, tag: str, attributes: dict[str, str], text: str = "", children: "list[Node] | None" = None
    ) -> None:
        self.tag, self.attributes = tag, attributes
        self.text = self.data = text
        """`text`: what stands before the first child; `data`: what stands anywhere directly in it."""
        self.children: list[Node] = [] if children is None else children

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Node)
            and (self.tag, self.attributes, self.text) == (other.tag, other.attributes, other.text)
            and self.children == other.children
        )

    __hash__ = None  # type: ignore[assignment]  # it changes

    def __repr__(self) -> str:
        return written([self])


class Tree(Protocol):
    """What a Node and an element of a document have in common."""

    @property
    def tag(self) -> str: ...
    @property
    def attributes(self) -> dict[str, str]: ...
    @property
    def text(self) -> str: ...
    @property
    def children(self) -> "Sequence[Any]": ...


class Payload(NamedTuple):
    """The contents of an operation."""

    text: str = ""
    nodes: list[Node] = []
    attributes: dict[str, str] = {}
    """To set, by name; only `set` has them."""


def is_name(name: str) -> bool:
    """Whether an element or attribute may be called so (DOC-001)."""
    if name in _good:
        return True
    if NAME.fullmatch(name) is None or name == "xmlns":
        return False
    if len(_good) < NAMES_KEPT:
        _good.add(name)
    return True


def are_names(names: set[str]) -> bool:
    """Whether all of them may be names."""
    return names <= _good or all(map(is_name, sorted(names)))


# Reading


class Limits(NamedTuple):
    """What a reader builds; beyond them it goes on reading, and builds no more."""

    depth: int
    """Of elements below the root."""
    elements: int
    """In all, the root not counted."""


class Read(NamedTuple):
    """The result of reading."""

    root: Node
    names: set[str]
    deepest: int
    elements: int


OF_OPERATIONS: Final = Limits(DEPTH_MAX + 1, ELEMENTS_MAX)
"""A payload lies one level below its root, or two below an `action`; its own depth is checked there."""
OF_DOCUMENTS: Final = Limits(TREE_DEPTH_MAX, TREE_ELEMENTS_MAX)


class Malformed(Exception):  # never leaves the modules of `wire.document`
    """The bytes are no XML; `root` is what was read of the first start tag, if that was reached."""

    def __init__(self, why: str, root: Node | None = None) -> None:
        super().__init__(why)
        self.root = root


def read(body: bytes, limits: Limits = OF_OPERATIONS) -> Read:
    """Parse bytes as UTF-8 whatever they declare; Malformed if they are no XML. Time and memory: O(len(body))."""
    builder = _Builder(limits)
    parser = expat.ParserCreate("utf-8")
    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = builder.handlers()
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(body, True)  # it takes no keyword
    except expat.ExpatError as error:
        raise Malformed(str(error), builder.root) from None
    assert builder.root is not None, "a document without an element is no XML"
    return Read(builder.root, builder.names, builder.deepest, builder.elements)


def _refuse_doctype(*_: object) -> None:
    raise Malformed("a DOCTYPE")


class _Builder:
    """Nodes out of what expat reports."""

    __slots__ = ("deepest", "elements", "limits", "names", "root")

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.root: Node | None = None
        self.names: set[str] = set()
        self.deepest = self.elements = 0

    def handlers(self) -> tuple[Callable[..., None], Callable[[str], None], Callable[[str], None]]:
        """What expat calls for a start tag, an end tag, and text."""
        names, (depth_max, elements_max) = self.names, self.limits
        stack: list[Node] = []
        skipped = 0

        def start(tag: str, attributes: dict[str, str]) -> None:
            nonlocal skipped
            if not stack:
                self.root = node = Node(tag, attributes)
                stack.append(node)
                names.add(tag)
                names.update(attributes)
                return
            depth = len(stack) + skipped
            self.deepest = max(self.deepest, depth)
            self.elements += 1
            if skipped or depth > depth_max or self.elements > elements_max:
                skipped += 1
                return
            names.add(tag)
            names.update(attributes)
            node = Node(tag, attributes)
            stack[-1].children.append(node)
            stack.append(node)

        def end(_: str) -> None:
            nonlocal skipped
            if skipped:
                skipped -= 1
                return
            node = stack.pop()
            if node.children and node.text and not node.text.strip(WHITE):
                node.text = ""

        def data(text: str) -> None:
            if not skipped:
                node = stack[-1]
                node.data += text
                if not node.children:
                    node.text = node.data

        return start, end, data


class _FirstTag(Exception):  # it is how reading is ended
    pass


def first_tag(body: bytes) -> tuple[str, dict[str, str]]:
    """The first start tag and its attributes (GSP-012); Malformed if there is none, or a DOCTYPE before it.

    Nothing behind the tag is looked at.
    """
    found: list[tuple[str, dict[str, str]]] = []

    def start(tag: str, attributes: dict[str, str]) -> None:
        found.append((tag, attributes))
        raise _FirstTag

    parser = expat.ParserCreate("utf-8")
    parser.StartElementHandler = start
    parser.StartDoctypeDeclHandler = _refuse_doctype
    try:
        parser.Parse(body, True)  # it takes no keyword
    except _FirstTag:
        return found[0]
    except expat.ExpatError as error:
        raise Malformed(str(error)) from None
    raise Malformed("no element")


def behind_first_tag(body: bytes) -> tuple[bytes, bool]:
    """What stands behind the first start tag of a well-formed element, and whether that tag ends the element, too."""
    parser = expat.ParserCreate("utf-8")
    starts: list[int] = []

    def start(_: str, __: dict[str, str]) -> None:
        starts.append(parser.CurrentByteIndex)
        raise _FirstTag

    parser.StartElementHandler = start
    with suppress(_FirstTag):
        parser.Parse(body, True)  # it takes no keyword
    quote, at = 0, starts[0]
    while body[at] != GREATER or quote:
        if body[at] in QUOTES:
            quote = 0 if quote == body[at] else quote or body[at]
        at += 1
    return body[at + 1 :], body[at - 1] == SLASH


GREATER: Final = ord(">")
SLASH: Final = ord("/")
QUOTES: Final = b"\"'"


def tree_of(text: str | bytes) -> Node:
    """A whole document; PeerError `bad-xml` if it is none, or too deep or large for one."""
    body = text.encode() if isinstance(text, str) else text
    try:
        found = read(body, OF_DOCUMENTS)
    except Malformed as error:
        raise PeerError("bad-xml", str(error), body) from None
    _check(found, OF_DOCUMENTS, body)
    return found.root


def fragment_of(text: str) -> Payload:
    """What a person types: text, and elements behind it; PeerError `bad-xml` if it is no XML, `mixed` if text would be lost.

    >>> fragment_of('late <pass team="home"/>')
    Payload(text='late ', nodes=[<pass team="home"/>], attributes={})
    """
    body = f"<w>{text}</w>".encode("utf-8", "surrogatepass")
    if len(body) > OPERATION_BYTES_MAX:
        raise PeerError("bad-xml", f"more than {OPERATION_BYTES_MAX:,} bytes", body)
    try:
        found = read(body)
    except Malformed as error:
        raise PeerError("bad-xml", str(error), body) from None
    _check(found, Limits(DEPTH_MAX, ELEMENTS_MAX), body)
    refuse_mixed(found.root)
    return Payload(found.root.text, found.root.children)


def refuse_mixed(root: Node) -> None:
    """PeerError `mixed` for text behind an element, which no document keeps (DOC-001)."""
    todo = [root]
    while todo:
        node = todo.pop()
        lost = (node.data[len(node.text) :] if node.children else "").strip(WHITE)
        if lost:
            raise PeerError("mixed", f"the text {lost[:LOST_SHOWN]!r} stands behind an element and would not be kept")
        todo += node.children


def _check(found: Read, limits: Limits, body: bytes) -> None:
    """PeerError for what a document cannot hold."""
    if not are_names(found.names):
        bad = min(name for name in found.names if not is_name(name))
        raise PeerError("bad-xml", f"the name {bad[:128]!r}", body)
    if found.deepest > limits.depth:
        raise PeerError("bad-xml", f"deeper than {limits.depth} elements", body)
    if found.elements > limits.elements:
        raise PeerError("bad-xml", f"more than {limits.elements} elements", body)


# Writing

_TEXT: Final = re.compile("[&<>\r]")
_VALUE: Final = re.compile('[&<"\t\n\r]')
_ROOT_VALUE: Final = re.compile('[&<>"\t\n\r]')
_UNSAYABLE: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ESCAPES: Final = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\t": "&#x9;", "\n": "&#xA;", "\r": "&#xD;"}


def _escape(found: "re.Match[str]") -> str:
    return _ESCAPES[found[0]]


def escaped_text(text: str) -> str:
    """Between tags."""
    return _TEXT.sub(_escape, text)


def escaped_value(value: str) -> str:
    """Between the quotes of an attribute."""
    return _VALUE.sub(_escape, value)


def escaped_root_value(value: str) -> str:
    """The same in the root tag of an operation, whose first `>` is its end (GSP-001)."""
    return _ROOT_VALUE.sub(_escape, value)


def is_sayable(text: str) -> bool:
    """Whether XML 1.0 has all characters of it."""
    return _UNSAYABLE.search(text) is None


def written(nodes: Iterable[Tree]) -> str:
    """As an operation carries it (GSP-001): attributes in their order but `eid` first, empty elements closed at once."""
    parts: list[str] = []
    todo: list[Any] = list(nodes)[::-1]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            parts.append(node)
            continue
        attributes = node.attributes
        first = f' {EID}="{escaped_value(attributes[EID])}"' if EID in attributes else ""
        others = [f' {name}="{escaped_value(value)}"' for name, value in attributes.items() if name != EID]
        is_empty = not node.text and not node.children
        parts.append(f"<{node.tag}{first}{''.join(others)}{'/' * is_empty}>{escaped_text(node.text)}")
        if not is_empty:
            todo.append(f"</{node.tag}>")
            todo.extend(reversed(node.children))
    return "".join(parts)


def canonical(root: Tree, *, eids: bool = True) -> bytes:
    """Canonical XML 1.0 (DOC-050); without `eids` as a file that is handed on. Works at any depth.

    >>> canonical(tree_of('<a eid="e" z="1" b=">"><c/>gone</a>'), eids=False)
    b'<a b=">" z="1"><c></c></a>'
    """
    parts: list[str] = []
    say = parts.append
    todo: list[Any] = [root]
    while todo:
        node = todo.pop()
        if isinstance(node, str):
            say(node)
            continue
        tag, attributes = node.tag, node.attributes
        say(f"<{tag}")
        for name in sorted(attributes):
            if eids or name != EID:
                say(f' {name}="{_VALUE.sub(_escape, attributes[name])}"')
        text, children = node.text, node.children
        if not children:
            say(f">{_TEXT.sub(_escape, text) if text else ''}</{tag}>")
            continue
        say(f">{_TEXT.sub(_escape, text) if text else ''}")
        todo.append(f"</{tag}>")
        todo.extend(reversed(children))
    return "".join(parts).encode()

"""Entries as people type them: words for the place, and words for the content (docs/doc.md, "What one types").

    weft doc set period=1 jam=3 duration=90
                 ╰──where──╯ ╰──what──╯

The first word begins the reference. `eid=…` and `path=…` are complete references; after the first name of a chain of
the schema (derby: `period`, `team`) its next name (`jam`, `person`) belongs to the reference if it is the next word.
All words after it are the content: for `set` attributes; for `add` XML, or tags, each with its attributes: `penalty
team=home code=B`. So an attribute with the name of the chain's next step must come after another attribute, or be given
by `-a`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from weft.base.errors import PeerError
from weft.cores.document.fold.schema import Chain
from weft.cores.kit.refusals import Refusal
from weft.wire.document.xml import Node, Payload, fragment_of, is_name

Chains = Mapping[str, "Chains"]
"""The names of references that a schema has: each with those that may follow it."""
ALONE = ("eid", "path")
MIXED = "an element has its text before its first child: a tag round the rest"
NAMES = "letters, digits, _ . -; a letter first; a text is said by --text"


def chains_of(steps: Iterable[Chain]) -> Chains:
    """The names of references in a schema."""
    return {step.ref: chains_of(step.sub) for step in steps}


class Typed(NamedTuple):
    """The words, divided."""

    reference: dict[str, str]
    rest: list[str]


def split(words: Sequence[str], chains: Chains) -> Typed:
    """Divide the words into the reference and the rest.

    >>> derby = {"period": {"jam": {}}, "team": {"person": {}}}
    >>> split(["period=1", "jam=3", "duration=90"], derby)
    Typed(reference={'period': '1', 'jam': '3'}, rest=['duration=90'])
    >>> split(["eid=x", "team=home"], derby)
    Typed(reference={'eid': 'x'}, rest=['team=home'])
    """
    reference: dict[str, str] = {}
    for place, word in enumerate(words):
        name, has_value, value = word.partition("=")
        is_alone = not reference and name in ALONE
        if not has_value or not (is_alone or name in chains):
            return Typed(reference, list(words[place:]))
        reference[name] = value
        if is_alone:
            return Typed(reference, list(words[place + 1 :]))
        chains = chains[name]
    return Typed(reference, [])


def attributes_of(words: Iterable[str]) -> dict[str, str]:
    """`name=value` each; Refusal for any other word."""
    found: dict[str, str] = {}
    for word in words:
        name, has_value, value = word.partition("=")
        if not has_value or not is_name(name):
            raise Refusal("bad-words", f"{word!r} is no attribute=value", "weft doc set period=1 jam=3 duration=90")
        if name in found:
            raise Refusal("bad-words", f"{name} is said twice", "one value for each attribute")
        found[name] = value
    return found


def payload_of(words: Sequence[str], text: str) -> Payload:
    """The payload of `add`: XML, or tags with attributes; `text` goes into the only tag, else into the target."""
    nodes: list[Node] = []
    typed: list[Node] = []
    for word in words:
        name, has_value, value = word.partition("=")
        if word.lstrip().startswith("<"):
            fragment = xml_of(word)
            text += fragment.text.strip()
            nodes += fragment.nodes
        elif not is_name(name):
            raise Refusal("bad-words", f"{name!r} is no name of an element or attribute", NAMES)
        elif not has_value:
            typed.append(Node(word, {}, "", []))
            nodes.append(typed[-1])
        elif not nodes or not typed or nodes[-1] is not typed[-1]:
            mend = "weft doc add period=1 jam=3 penalty team=home code=B; attributes are changed by weft doc set"
            raise Refusal("bad-words", f"{word!r} stands behind no tag", mend)
        elif name in typed[-1].attributes:
            raise Refusal("bad-words", f"{name} is said twice", "one value for each attribute")
        else:
            typed[-1].attributes[name] = value
    if text and len(typed) == len(nodes) == 1:
        typed[0].text, text = text, ""
    return Payload(text, nodes, {})


def xml_of(text: str) -> Payload:
    """An XML fragment as typed; Refusal `bad-xml`."""
    try:
        return fragment_of(text)
    except PeerError as error:
        if error.code == "mixed":
            raise Refusal("bad-xml", error.why, MIXED) from None
        mend = """'<penalty team="home" person="123" code="B"/>': in single quotes, each tag closed"""
        raise Refusal("bad-xml", f"that is no XML: {error.why or error.code}", mend) from None


def where_of(chains: Chains) -> str:
    """The forms of a reference, for an error message.

    >>> where_of({"period": {"jam": {}}, "team": {"person": {}}})
    'path=/ (the top), eid=…, period=… [jam=…], team=… [person=…]'
    """
    return ", ".join(["path=/ (the top)", "eid=…", *(_chain(name, below) for name, below in chains.items())])


def _chain(name: str, below: Chains) -> str:
    return " ".join([f"{name}=…", *(f"[{_chain(*one)}]" for one in below.items())])

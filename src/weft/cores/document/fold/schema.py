"""The schema of a document: its root, its genesis, and its short references (DOC-003).

name = "derby"
root = "bout"
attributes = { ruleset = "MAR2014" }

[[genesis]]                    # children of the root before the first operation
tag = "period"
attributes = { number = "1" }

[[chain]]                      # period="1" refers to <period number="1"> below the root
ref = "period"
tag = "period"
keys = ["number"]              # found by the first key, else by the second
create = true                  # a reference creates it; keys are numbers, min..max
min = 1
max = 9
fixed = true                   # cannot be removed

[[chain.sub]]                  # period="1" jam="3"
ref = "jam"
tag = "jam"
keys = ["number"]
create = true
min = 1
max = 999
single = ["lead"]              # tags of which there should be only one below it
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from hashlib import sha256
from importlib import resources
from typing import Annotated, Any, Final

import msgspec

from weft.base.errors import UserError
from weft.base.settings import parse_toml
from weft.cores.document.fold.tree import Element
from weft.wire.document.operations import SEALS, STAMPS
from weft.wire.document.xml import EID, canonical, is_name, is_sayable

SHIPPED: Final = ("derby", "plain")
KEY: Final = re.compile(r"[1-9][0-9]{0,15}")
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
Short = Annotated[str, msgspec.Meta(max_length=1_024)]


class Seed(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An element of genesis."""

    tag: Name
    attributes: dict[Name, Short] = {}
    text: Short = ""
    children: tuple["Seed", ...] = ()


class Chain(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One step of a chain, which is a short reference."""

    ref: Name
    """The attribute of an operation that contains its key."""
    tag: Name
    keys: tuple[Name, ...]
    create: bool = False
    min: Annotated[int, msgspec.Meta(ge=1, le=1 << 53)] = 1
    max: Annotated[int, msgspec.Meta(ge=1, le=1 << 53)] = 999
    fixed: bool = False
    single: tuple[Name, ...] = ()
    sub: tuple["Chain", ...] = ()

    @property
    def is_keyed(self) -> bool:
        """Whether a payload element of its tag is merged with the element of the same key (DOC-030)."""
        return self.create or self.fixed

    def number(self, key: str) -> int | None:
        """The number in a key of a creatable step; None: the key is invalid."""
        if KEY.fullmatch(key) is None:
            return None
        number = int(key)
        return number if self.min <= number <= self.max else None


class Written(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The schema file."""

    name: Name
    root: Name
    attributes: dict[Name, Short] = {}
    genesis: tuple[Seed, ...] = ()
    chain: tuple[Chain, ...] = ()


class Schema:
    """The schema of one session; immutable."""

    def __init__(self, written: Written) -> None:
        self.written = written
        self.name, self.root, self.chains = written.name, written.root, written.chain
        self.below: dict[str, dict[str, Chain]] = {}
        """Steps, by the tag of the parent and the tag."""
        self.protected: dict[str, frozenset[str]] = {}
        """Attributes that cannot be set, by tag (DOC-032)."""
        self.singles: dict[str, frozenset[str]] = {}
        """Tags of which there should be one, by the tag of the parent (DOC-040)."""
        for parent, chain in _walk(written.root, written.chain):
            _check_step(self, parent, chain)
            self.below.setdefault(parent, {})[chain.tag] = chain
            if chain.is_keyed:
                self.protected[chain.tag] = self.protected.get(chain.tag, frozenset()) | frozenset(chain.keys)
            if chain.single:
                self.singles[chain.tag] = self.singles.get(chain.tag, frozenset()) | frozenset(chain.single)
        _check_names(written)
        self.genesis()

    @staticmethod
    def load(text: str) -> "Schema":
        """`derby`, `plain`, or the text of a schema in TOML; UserError `bad-schema`."""
        return _load(text)

    def genesis(self) -> Element:
        """The document before the first operation; a new one each time."""
        root = Element(self.root, dict(self.written.attributes), "", None, None)
        root.is_fixed = True
        _grow(self, root, self.written.genesis)
        return root

    @property
    def references(self) -> dict[str, dict[str, Any]]:
        """Names of short references, each with the names that may follow it: `{"period": {"jam": {}}}`."""
        return _names_of(self.chains)

    @property
    def canonical_genesis(self) -> bytes:
        """The bytes that the chain of a log begins with (GSP-051)."""
        return canonical(self.genesis())

    @property
    def genesis_sha256(self) -> str:
        """Equal for equal genesis, so that nodes can compare what they mean by a schema's name (GSP-033)."""
        return sha256(self.canonical_genesis).hexdigest()


@lru_cache(maxsize=64)
def _load(text: str) -> Schema:
    if text in SHIPPED:
        text = (resources.files("weft.cores.document.fold") / "schemas" / f"{text}.toml").read_text("utf-8")
    try:
        return Schema(msgspec.convert(parse_toml(text), Written))
    except ValueError as error:
        raise _bad(str(error)) from None


def _bad(why: str) -> UserError:
    return UserError(
        "bad-schema", f"no schema of a document: {why}", "use derby, plain, or a TOML file as docs/doc.md shows"
    )


def _names_of(chains: tuple[Chain, ...]) -> dict[str, dict[str, Any]]:
    return {chain.ref: _names_of(chain.sub) for chain in chains}


def _walk(parent: str, chains: tuple[Chain, ...]) -> Iterator[tuple[str, Chain]]:
    for chain in chains:
        yield parent, chain
        yield from _walk(chain.tag, chain.sub)


def _check_step(schema: Schema, parent: str, chain: Chain) -> None:
    """UserError for an ambiguous step."""
    if chain.tag in schema.below.get(parent, {}):
        raise _bad(f"two steps lead from {parent} to {chain.tag}")
    if not chain.keys or len(chain.keys) > 2:
        raise _bad(f"{chain.ref} has {len(chain.keys)} keys, which is neither one nor two")
    if chain.create and (len(chain.keys) != 1 or chain.min > chain.max):
        raise _bad(f"{chain.ref} can be created, so it has one key from min to max")
    if chain.ref in (EID, "path", "attribute") or chain.ref in (*STAMPS, *SEALS):
        raise _bad(f"{chain.ref} means something else in an operation")


def _check_names(written: Written) -> None:
    names = [written.root, *written.attributes]
    for _, chain in _walk(written.root, written.chain):
        names += [chain.ref, chain.tag, *chain.keys, *chain.single]
    todo = list(written.genesis)
    values = list(written.attributes.values())
    while todo:
        seed = todo.pop()
        names += [seed.tag, *seed.attributes]
        values += [*seed.attributes.values(), seed.text]
        todo += seed.children
    for name in names:
        if not is_name(name):
            raise _bad(f"the name {name!r}")
    if EID in written.attributes or not all(map(is_sayable, values)):
        raise _bad("genesis has no eids, and no characters that XML has not")


def _grow(schema: Schema, parent: Element, seeds: tuple[Seed, ...]) -> None:
    steps = schema.below.get(parent.tag, {})
    for place, seed in enumerate(seeds):
        child = Element(seed.tag, dict(seed.attributes), seed.text, parent, None)
        child.is_fixed = True
        child.rank = place - len(seeds)
        step = steps.get(seed.tag)
        if step is not None and step.create:
            child.rank = step.number(seed.attributes.get(step.keys[0], "")) or 0
            last = parent.kin_of(seed.tag, step.keys).after(child.rank - 1)
            if not child.rank or last is not None:
                raise _bad(f"{seed.tag} elements of genesis have ascending numbers from {step.min} to {step.max}")
        child.link()
        _grow(schema, child, seed.children)

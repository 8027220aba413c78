"""The element that a step refers to (DOC-020): by eid, else by path, else by the first chain that it names.

A lookup changes nothing. A missing element can be created when the step adds to it or sets something (`Plan`);
otherwise there is a reason why the step does nothing, or something that it waits for (`Absent`).
"""

from typing import Final, NamedTuple

from weft.cores.document.fold.schema import Chain
from weft.cores.document.fold.state import State, Trigger
from weft.cores.document.fold.tree import Element
from weft.wire.document.operations import PATH_PARTS_MAX, REMOVE, SET, Step
from weft.wire.document.xml import WHITE, is_name

PARKED: Final = "parked"
Pick = tuple[Chain | None, str]
"""A step of a chain with its key; or None and the tag of a leaf."""


class Plan(NamedTuple):
    """Elements to create, one below the other; the last one is meant."""

    parent: Element
    picks: tuple[Pick, ...]

    @property
    def tag(self) -> str:
        """Tag of the last element."""
        chain, key = self.picks[-1]
        return chain.tag if chain else key


class Absent(NamedTuple):
    """There is no element, or none yet."""

    outcome: str
    trigger: Trigger | None = None


NO_REFERENCE: Final = Absent("inert:no-reference")
BAD_KEY: Final = Absent("inert:bad-key")
BAD_PATH: Final = Absent("inert:bad-path")
NOT_THERE: Final = Absent("inert:absent")
Place = Element | Plan


def find(state: State, step: Step) -> Element | Plan | Absent:
    """The element of a step by path or by chain. An eid is looked up in `State.live`."""
    if step.path is not None:
        return _by_path(state, step, step.path)
    noted = step.picks
    if noted is None or noted[0] is not state.schema:
        noted = step.picks = (state.schema, _picks_of(state, step))
    picks = noted[1]
    if isinstance(picks, Absent):
        return picks
    here = state.root
    for place, (chain, key) in enumerate(picks):
        found = here.kin_of(chain.tag, chain.keys).find(key)
        if found is None:
            return _missing(state, step, here, picks[place:])
        here = found
    return here


def _picks_of(state: State, step: Step) -> tuple[tuple[Chain, str], ...] | Absent:
    """The chain that a step names, with all its keys validated."""
    attributes = step.attributes
    picks: list[tuple[Chain, str]] = []
    chains = state.schema.chains
    while True:
        chain = next((each for each in chains if each.ref in attributes), None)
        if chain is None:
            return tuple(picks) if picks else NO_REFERENCE
        key = attributes[chain.ref].strip(WHITE)
        if chain.create and chain.number(key) is None:
            return BAD_KEY
        picks.append((chain, key))
        chains = chain.sub


def _missing(state: State, step: Step, here: Element, picks: tuple[tuple[Chain, str], ...]) -> Plan | Absent:
    """The first element of the rest of a chain is missing below `here`."""
    if picks[0][0].create and step.verb == REMOVE:
        return NOT_THERE
    first = next((at for at, (chain, _) in enumerate(picks) if not chain.create), len(picks))
    if first == len(picks):
        return Plan(here, picks)
    made, chain = picks[:first], picks[first][0]
    if chain.fixed:
        return Absent(f"inert:unknown-{chain.ref}")
    place = state.place_of(here) + "".join(f"/{each.tag}[{number}]" for each, number in made)
    return Absent(PARKED, ("child", place))


def _by_path(state: State, step: Step, path: str) -> Element | Plan | Absent:
    """The first match of each tag below the root; `set` creates a missing leaf."""
    parts = path.strip("/").split("/")
    if parts in ([""], [state.root.tag]):
        return state.root
    if len(parts) > PATH_PARTS_MAX or not all(map(is_name, parts)):
        return BAD_PATH
    here = state.root
    for place, tag in enumerate(parts):
        same = state.kin(here, tag).elements
        if same:
            here = same[0]
            continue
        is_leaf = place == len(parts) - 1 and tag not in state.schema.below.get(here.tag, {})
        if step.verb == SET and is_leaf:
            return Plan(here, ((None, tag),))
        return Absent(PARKED, ("tag", tag))
    return here


def realise(state: State, plan: Plan) -> Element | None:
    """Create the planned elements; None, and none is created, if the document has no room."""
    here, picks = plan
    if not state.has_room(here, len(picks)):
        return None
    for chain, key in picks:
        if chain is not None:
            here = state.make(here, chain, key)
        else:
            here = Element(key, {}, "", here, state.pair)
            state.insert(here)
    return here

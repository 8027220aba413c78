"""Rules in the store's hidden tree: types that check values, codecs that convert them (ADM-010, ADM-011).

    [null, "type", NAME…]             {schema, good, bad}   a type; those above it in the tree count too
    [null, "match", PATTERN…]         {type: PATH}          which type the values at these paths have
    [null, "codec", NAME…]            {name, in, out}       how values are converted
    [null, "conv", GROUP, PATTERN…]   {codec: PATH}         the paths where that is done for the users of a group

In a pattern `+` stands for one element and `#` for one or more; the most specific one with a value applies. This
follows real MoaT-KV servers, except that code in entries is stored and never run.
"""

from collections.abc import Callable
from typing import Any, Final

from weft.base.changes import Element, Event, Path
from weft.base.errors import PeerError
from weft.cores.kit.refusals import Refusal
from weft.cores.store.codecs import CODECS, Codec
from weft.cores.store.context import Context
from weft.cores.store.messages import Change, ValueMistyped
from weft.cores.store.schema import BadSchema, Checker, Misfit
from weft.cores.store.tree import Tree
from weft.wire.store.pack import canonical, pack, unpack
from weft.wire.store.path import normal, parse, text_of

TYPE, MATCH, CODEC, CONV = "type", "match", "codec", "conv"
GOOD_MIN, BAD_MIN = 2, 1
NOTHING: Final = object()


class Rules:
    """The rules that one node knows; read again after each change of the hidden tree."""

    def __init__(self, context: Context, tree: Tree) -> None:
        self._context, self._tree = context, tree
        self._read: dict[Path, Any] = {}
        self._has: dict[str, bool] = {}

    # What changes

    def note(self, change: Change) -> None:
        """A change was merged: rules in it apply at once; a value that does not fit its type is told and kept."""
        path = change.event.path
        if path and path[0] is None:
            self._read.clear()
            self._has.clear()
        elif change.is_shown and change.event.node != self._context.name and change.event.value:
            why = self.misfit(path, change.event.value)
            if why:
                event = ValueMistyped(text_of(path), change.event.node, change.event.tick, why)
                self._context.count("mistyped")
                self._context.tell_seldom("mistyped", event, self._context.now.mono)

    # Types

    def check(self, path: Path, value: bytes) -> None:
        """Check a value to be written; Refusal `type-error` if it does not fit, or is an invalid rule."""
        if path and path[0] is None:
            judge = JUDGES.get(path[1]) if len(path) > 2 and isinstance(path[1], str) else None  # a kind and a name
            if judge is not None:
                judge(self, path, _unpacked(value))
        elif why := self.misfit(path, value):
            raise Refusal("type-error", why)

    def misfit(self, path: Path, value: bytes) -> str:
        """Why a value does not fit the type of its path; empty: it fits, or there is no type."""
        if not self._is_there(MATCH):
            return ""
        found = self._match((None, MATCH), path)
        name = _path_in(found, "type")
        if name is None:
            return ""
        return self._misfit_type(name, _unpacked(value))

    def _misfit_type(self, name: Path, value: Any) -> str:
        """Like `misfit`, for the type of that name and all above it."""
        for length in range(1, len(name) + 1):
            kind = self._at((None, TYPE, *name[:length]))
            if isinstance(kind, dict) and "schema" in kind:
                try:
                    Checker(kind["schema"]).check(value)
                except Misfit as error:
                    return f"{text_of(name[:length])}: {error}"
                except BadSchema:
                    continue  # of a foreign server, or of another release
        return ""

    def check_type(self, path: Path, kind: Any) -> None:
        """A type: its schema must be valid, its good examples must fit, and its bad ones must not."""
        if not isinstance(kind, dict) or not ("schema" in kind or "code" in kind):
            raise Refusal("type-error", "a type is a map with `schema`")
        if "schema" not in kind:
            return
        if self._context.foreign:  # it crashes moat-kv 0.71 (PNG-031)
            raise Refusal("type-error", "a type with `schema` would end the MoaT-KV servers that are here")
        good, bad = _examples(kind, "good", GOOD_MIN), _examples(kind, "bad", BAD_MIN)
        above = path[2:-1]
        try:
            checker = Checker(kind["schema"])
            for value in good:
                checker.check(value)
            above_why = next((why for value in good if (why := self._misfit_type(above, value))), "")
            passed = [value for value in bad if self._fits(checker, above, value)]
        except Misfit as error:
            raise Refusal("type-error", f"a good example does not fit: {error}") from None
        except BadSchema as error:
            raise Refusal("type-error", f"the schema cannot be read: {error}") from None
        if above_why:
            raise Refusal("type-error", f"a good example does not fit: {above_why}")
        if passed and "code" not in kind:
            raise Refusal("type-error", f"a bad example fits: {str(passed[0])[:80]}")

    def _fits(self, checker: Checker, above: Path, value: Any) -> bool:
        try:
            checker.check(value)
        except Misfit:
            return False
        return not self._misfit_type(above, value)

    def check_match(self, _: Path, match: Any) -> None:
        """A match must name an existing type."""
        name = _path_in(match, "type")
        if name is None:
            raise Refusal("type-error", "a match is a map with `type`, the path of a type")
        if self._at((None, TYPE, *name)) is NOTHING:
            raise Refusal("type-error", f"there is no type {text_of(name)}")

    # Codecs

    def codec_of(self, group: str, path: Path) -> Codec | None:
        """How values at a path are converted for the users of a group; None: not at all."""
        if not group or (path and path[0] is None) or not self._is_there(CONV):
            return None
        name = _path_in(self._match((None, CONV, group), path), CODEC)
        codec = self._at((None, CODEC, *name)) if name is not None else None
        return CODECS.get(codec["name"]) if isinstance(codec, dict) and isinstance(codec.get("name"), str) else None

    def shown(self, group: str, path: Path, raw: bytes) -> bytes:
        """A value as the users of a group see it; unchanged if their codec cannot convert it."""
        codec = self.codec_of(group, path)
        return raw if codec is None else _turned(codec.out, raw) or raw

    def meant(self, group: str, path: Path, raw: bytes) -> bytes:
        """The stored form of a value that a user of a group writes.

        Refusal `bad-value` if the codec cannot convert it.
        """
        codec = self.codec_of(group, path)
        if codec is None:
            return raw
        turned = _turned(codec.inward, raw)
        if turned is None:
            raise Refusal("bad-value", "the codec of this path cannot read that value")
        return turned

    def check_codec(self, _: Path, rule: Any) -> None:
        """A codec: its examples must be converted as they state.

        One with code only is stored for servers that run it.
        """
        if not isinstance(rule, dict):
            raise Refusal("type-error", "a codec is a map with `name`, `in` and `out`")
        if "name" not in rule:
            if "encode" in rule or "decode" in rule:
                return
            raise Refusal("type-error", f"`name` is needed, one of {', '.join(CODECS)}")
        codec = CODECS.get(rule["name"]) if isinstance(rule["name"], str) else None
        if codec is None:
            raise Refusal("type-error", f"there is no codec {str(rule['name'])[:80]!r}; there are {', '.join(CODECS)}")
        for word, turn in (("in", codec.inward), ("out", codec.out)):
            for pair in _examples(rule, word, 1):
                if not isinstance(pair, list | tuple) or len(pair) != 2:  # input, expected output
                    raise Refusal("type-error", f"`{word}` is a list of pairs")
                turned = _turned(turn, pack(pair[0]))
                if turned is None or canonical(turned) != canonical(pack(pair[1])):
                    raise Refusal("type-error", f"`{word}`: {str(pair[0])[:80]} does not become {str(pair[1])[:80]}")

    def check_conv(self, path: Path, conv: Any) -> None:
        """Where a codec is used: a pattern must follow the group."""
        if len(path) < 4:  # null, conv, group, pattern
            raise Refusal("type-error", "behind the group a pattern of paths is needed")
        if _path_in(conv, CODEC) is None:
            raise Refusal("type-error", "a map with `codec` is needed, the path of a codec")

    # The hidden tree

    def _is_there(self, kind: str) -> bool:
        found = self._has.get(kind)
        if found is None:
            found = self._has[kind] = self._tree.live((None, kind)) > 0
        return found

    def _at(self, path: Path) -> Any:
        """The unpacked value at a path; NOTHING if there is none."""
        found = self._read.get(path)
        if found is None:
            found = _value(self._tree.get(path))
            if found is not NOTHING:  # otherwise names that do not exist would fill the cache
                self._read[path] = found
        return found

    def _match(self, top: Path, path: Path) -> Any:
        """The value of the most specific pattern below `top` that matches a path; NOTHING if none does."""
        steps: list[tuple[Path, bool]] = [(top, False)]
        for element in path:
            steps = [further for step in steps for further in self._further(step, element)][:STEPS_MAX]
        return next((value for at, _ in steps if (value := self._at(at)) is not NOTHING), NOTHING)

    def _further(self, step: tuple[Path, bool], element: Element) -> list[tuple[Path, bool]]:
        """Patterns after one more element, the most specific first; a `#` may also match further elements."""
        at, is_kept = step
        ways: tuple[tuple[Element, bool], ...] = ((element, False), ("+", False), ("#", True))
        found = [((*at, name), keeps) for name, keeps in ways if self._tree.live((*at, name))]
        return [*found, step] if is_kept else found


STEPS_MAX: Final = 64  # patterns followed at the same time
JUDGES: Final[dict[str, Callable[[Rules, Path, Any], None]]] = {
    TYPE: Rules.check_type,
    MATCH: Rules.check_match,
    CODEC: Rules.check_codec,
    CONV: Rules.check_conv,
}


def _value(event: Event | None) -> Any:
    return NOTHING if event is None or event.value is None else _unpacked(event.value)


def _unpacked(raw: bytes) -> Any:
    try:
        return unpack(raw)
    except PeerError:
        return NOTHING


def _path_in(rule: Any, word: str) -> Path | None:
    """A path in a map, in any of its forms: path, list, or text."""
    value = rule.get(word) if isinstance(rule, dict) else None
    try:
        if isinstance(value, str):
            return parse(value)
        return normal(tuple(value), "seed") if isinstance(value, list | tuple) and value else None
    except PeerError:
        return None


def _examples(rule: dict[Any, Any], word: str, least: int) -> list[Any]:
    listed = rule.get(word, ())
    if not isinstance(listed, list | tuple) or len(listed) < least:
        raise Refusal("type-error", f"`{word}` lists at least {least}")
    return list(listed)


def _turned(turn: Callable[[Any], Any], raw: bytes) -> bytes | None:
    try:
        return pack(turn(unpack(raw)))
    except (ValueError, TypeError, OverflowError, RecursionError, PeerError):
        return None

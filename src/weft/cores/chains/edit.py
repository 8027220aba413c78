r"""`edit`: changes fields, step by step (CHN-065).

    edits = [["rename", "msg", "text"], ["replace", "text", '\d{4,}', "****"], ["remove", "token"], ["hash", "user"]]

A step on a missing field does nothing; only `set` creates one. A step that is impossible for a record (a map is needed
and the value is none, a text would become too long) is an error, and then no step is applied to that record.
"""

from collections.abc import Callable
from hashlib import blake2b
from typing import Any, Final

import msgspec

from weft.base.now import Now
from weft.cores.chains import limits, patterns
from weft.cores.chains.fields import Fields, place_of
from weft.cores.chains.filters import FINE, House, Judgement
from weft.cores.chains.messageview import ENCODERS, MessageView
from weft.cores.chains.options import EditOptions
from weft.cores.chains.settings import FilterSpec
from weft.cores.chains.viewed import Viewed

Step = Callable[[Fields], bool | None]
"""Changes a record and returns whether it did; None: the step is impossible."""

MASK: Final = "***"
HASH_BYTES: Final = 16
_text_of: Final = msgspec.json.Encoder(order="sorted").encode


def _set(path: str, value: Any) -> Step:
    def put(record: Fields) -> bool:
        before = record.get(path)
        record[path] = value
        return before != value or type(before) is not type(value)

    def put_inside(record: Fields) -> bool | None:
        place = place_of(record, path, make=True)
        if place is None:
            return None
        inner, key = place
        before = inner.get(key)
        inner[key] = value
        return before != value or type(before) is not type(value)

    return put_inside if "." in path else put


def _rename(path: str, new: str) -> Step:
    def rename(record: Fields) -> bool | None:
        place = place_of(record, path)
        if place is None or place[1] not in place[0]:
            return False
        value = place[0].pop(place[1])
        target = place_of(record, new, make=True)
        if target is None:
            return None
        target[0][target[1]] = value
        return True

    return rename


def _remove(path: str) -> Step:
    def remove(record: Fields) -> bool:
        place = place_of(record, path)
        if place is None or place[1] not in place[0]:
            return False
        del place[0][place[1]]
        return True

    return remove


def _changed(path: str, change: Callable[[Any], Any]) -> Step:
    """A step that replaces a value; `change` returns None if it cannot."""

    def step(record: Fields) -> bool | None:
        place = place_of(record, path)
        if place is None or (value := place[0].get(place[1])) is None:
            return False
        changed = change(value)
        if changed is None:
            return None
        place[0][place[1]] = changed
        return changed is not value and changed != value

    return step


def _mask(path: str) -> Step:
    return _changed(path, lambda _: MASK)


def _hash(path: str, house: House) -> Step:
    """Replace a value by 32 hex digits, computed with this node's secret.

    A node without a secret masks the value: a hash that anybody can compute hides nothing.
    """
    if not house.secret:
        return _mask(path)
    key = blake2b(house.secret, digest_size=32, person=b"weft.edit.hash").digest()
    return _changed(path, lambda value: blake2b(_bytes_of(value), digest_size=HASH_BYTES, key=key).hexdigest())


def _bytes_of(value: Any) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    return value if isinstance(value, bytes) else _text_of(value)


def _replace(path: str, pattern: str, text: str) -> Step:
    replace = patterns.replacer(pattern, text)

    def replaced(value: Any) -> Any:
        if not isinstance(value, str):
            return value
        if len(value) > limits.EDITED_CHARS_MAX:
            return None
        changed = replace(value)
        return changed if len(changed) <= limits.EDITED_CHARS_MAX else None

    return _changed(path, replaced)


STEPS: Final[dict[str, Callable[..., Step]]] = {
    "set": _set,
    "rename": _rename,
    "remove": _remove,
    "mask": _mask,
    "replace": _replace,
}


class Edit:
    """The filter; it drops no record."""

    def __init__(self, spec: FilterSpec, options: EditOptions, house: House) -> None:
        self._steps = [
            _hash(arguments[0], house) if verb == "hash" else STEPS[verb](*arguments)
            for verb, *arguments in options.edits
        ]
        paths = [path for verb, *rest in options.edits for path in rest[: 2 if verb == "rename" else 1]]
        self._depth = max([path.count(".") + 1 for path in paths])
        """How many levels of maps the steps change: a record is copied to this depth, so a failed edit leaves it
        unchanged.
        """
        self._growth = sum([_growth(step) for step in options.edits])

    def judge(self, view: Viewed, seen: list[int], now: Now) -> Judgement:
        """Records that cannot be edited are errors and stay unchanged. Samples are never edited: settings refuse it."""
        if not isinstance(view, MessageView):
            return FINE
        if view.parcel.fmt not in ENCODERS or not view.is_readable:
            return Judgement([], list(seen))
        if view.has_room(self._growth * len(seen)):
            return self._edited(view, seen)
        before, was_changed = {index: view.records[index] for index in seen}, view.is_changed
        verdict = self._edited(view, seen)
        if verdict.is_changed and not view.fits():
            for index, record in before.items():
                view.records[index] = record
            view.is_changed = was_changed
            return Judgement([], list(seen))
        return verdict

    def _edited(self, view: MessageView, seen: list[int]) -> Judgement:
        records, steps, depth = view.records, self._steps, self._depth
        erred: list[int] = []
        is_changed = False
        for index in seen:
            record = _copied(records[index], depth)
            done = _done(steps, record)
            if done is None:
                erred.append(index)
            elif done:
                records[index] = record
                is_changed = True
        if is_changed:
            view.is_changed = True
            return Judgement([], erred, is_changed=True) if erred else CHANGED
        return Judgement([], erred) if erred else FINE

    def inherit(self, old: "Edit") -> None:
        """It has no state."""


CHANGED: Final = Judgement([], [], is_changed=True)
HEAD_BYTES: Final = 16  # of a key and a value, for what JSON puts around them
ESCAPED: Final = 6  # bytes that JSON may need for one character


def _copied(record: Fields, depth: int) -> Fields:
    if depth == 1:
        return dict(record)
    return {key: _copied(value, depth - 1) if type(value) is dict else value for key, value in record.items()}


def _done(steps: list[Step], record: Fields) -> bool | None:
    """Apply the steps. Returns whether the record changed; None if a step is impossible."""
    is_changed = False
    try:
        for step in steps:
            changed = step(record)
            if changed is None:
                return None
            is_changed = is_changed or changed
    except (TypeError, ValueError, OverflowError, RecursionError):
        return None  # the value has no text form to hash
    return is_changed


def _growth(step: tuple[Any, ...]) -> int:
    """The most bytes that a step may add to a record, in the longest encoding."""
    verb, *rest = step
    texts = [rest[0], _bytes_of(rest[1])] if verb == "set" else rest[1:2] if verb == "rename" else []
    added = sum([ESCAPED * len(text) + HEAD_BYTES * (str(text).count(".") + 1) for text in texts])
    if verb == "replace":
        added += ESCAPED * limits.EDITED_CHARS_MAX
    return added + 2 * HASH_BYTES + HEAD_BYTES

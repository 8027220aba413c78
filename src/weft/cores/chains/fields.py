"""Fields of a record by their path: `name`, or `labels.cpu` for the `cpu` in the map `labels` (CHN-060).

A key that itself contains the dots, such as `service.name` in many JSON dialects, is tried first.
"""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from weft.cores.chains import limits

Fields = dict[Any, Any]
Read = Callable[[Fields], Any]


def is_path(path: str) -> bool:
    """Whether `path` can name a field.

    >>> [is_path(path) for path in ("name", "labels.cpu", "", "a..b", ".")]
    [True, True, False, False, False]
    """
    parts = path.split(".")
    return all(parts) and len(parts) <= limits.PATH_PARTS_MAX and len(path) <= limits.PATH_CHARS_MAX


@lru_cache(maxsize=4_096)
def reader(path: str) -> Read:
    """A function that reads the field at `path`; it returns None if the field is missing.

    >>> read = reader("labels.cpu")
    >>> read({"labels": {"cpu": 0}}), read({"labels.cpu": 1}), read({"labels": 5}), read({})
    (0, 1, None, None)
    """
    parts = path.split(".")
    if len(parts) == 1:
        return lambda record: record.get(path)

    def read(record: Fields) -> Any:
        found = record.get(path)
        if found is not None:
            return found
        inner: Any = record
        for part in parts:
            if type(inner) is not dict:
                return None
            inner = inner.get(part)
        return inner

    return read


def place_of(record: Fields, path: str, *, make: bool = False) -> tuple[Fields, str] | None:
    """The map that contains the field at `path`, and its key there; None if there is no such map and `make` is false.

    >>> place_of({"a": {"b": 1}}, "a.b"), place_of({}, "a.b"), place_of({"a": 5}, "a.b", make=True)
    (({'b': 1}, 'b'), None, None)
    >>> record = {}
    >>> place_of(record, "a.b", make=True), record
    (({}, 'b'), {'a': {}})
    """
    if "." not in path or path in record:
        return record, path
    *outer, last = path.split(".")
    inner: Any = record
    for part in outer:
        if part not in inner and make:
            inner[part] = {}
        inner = inner.get(part)
        if type(inner) is not dict:
            return None
    return inner, last

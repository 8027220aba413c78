"""Loads PyArrow without numpy and pandas, which take three quarters of its loading time."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Absent:
    """An import finder that reports one package as not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self.name:
            raise ImportError(fullname)


@contextmanager
def without(name: str) -> Iterator[None]:
    """Within this block an `import` of the package `name` fails, as if it were not installed.

    PyArrow imports pandas only to ask whether a value has a type of pandas; that costs a second on a small machine. It
    imports numpy for arrays that nobody here asks for; that is a fifth of the start of `weft sql`.
    """
    absent = _Absent(name)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


def load_alone() -> None:
    """Load the modules of PyArrow that write a segment, without numpy and pandas.

    Only for a process that never needs numpy arrays: PyArrow looks for numpy once and then works without it until the
    process ends. Does nothing if PyArrow is already loaded.
    """
    if "pyarrow" in sys.modules:
        return
    with without("numpy"), without("pandas"):
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.parquet

        pa.array([])  # here PyArrow looks for pandas, once

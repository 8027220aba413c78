"""PyArrow without what it loads beside: numpy and pandas, which are three quarters of what it costs to load."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class _Absent:
    """Says that a package is not installed."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, fullname: str, *_: object) -> None:
        if fullname == self.name:
            raise ImportError(fullname)


@contextmanager
def without(name: str) -> Iterator[None]:
    """Import something without a package that it would load if it could.

    PyArrow loads pandas, a second on a small machine, only to ask whether some value is of a type of pandas, be it an
    instant in the answer; and numpy, a fifth of the start of `weft sql`, for arrays that nobody asks for here.
    """
    absent = _Absent(name)
    sys.meta_path.insert(0, absent)
    try:
        yield
    finally:
        sys.meta_path.remove(absent)


def load_alone() -> None:
    """Load what writing a segment needs, for a process in which nobody wants arrays of numpy: PyArrow forgets no absence."""
    if "pyarrow" in sys.modules:
        return
    with without("numpy"), without("pandas"):
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.parquet  # as the line before: later imports find it loaded

        pa.array([])  # here it looks for pandas, once

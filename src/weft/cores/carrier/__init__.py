"""The one reliable link between a child and its parent."""

from weft.cores.carrier.core import Carrier

__all__ = ["Carrier"]

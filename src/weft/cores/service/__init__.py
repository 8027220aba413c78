"""The service's end of the catalog (CAT-023): it registers, beats, and comes back by itself."""

from weft.cores.service.core import Service

__all__ = ["Service"]

"""The configuration for programs of the Clone pattern: served to its clients, taken over from its servers."""

from weft.cores.clone.core import Clone

__all__ = ["Clone"]

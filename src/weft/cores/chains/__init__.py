"""What may pass, on the way out of this node and into it."""

from weft.cores.chains.core import Chains

__all__ = ["Chains"]

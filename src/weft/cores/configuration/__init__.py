"""Configuration from one root: replicated, followed, served onward."""

from weft.cores.configuration.core import Configuration

__all__ = ["Configuration"]

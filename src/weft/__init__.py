"""Weft weaves a fleet of machines into one fabric."""

__version__ = "0.1.0"

"""Configuration from one root: replicated, followed, served onward."""

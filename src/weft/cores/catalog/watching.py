"""Topics of filters that somebody watches (CAT-041)."""

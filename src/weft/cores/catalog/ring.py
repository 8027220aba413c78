"""The latest changes, for watchers that missed some (CAT-044)."""

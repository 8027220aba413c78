"""Shared state that survives network splits (specs/03)."""

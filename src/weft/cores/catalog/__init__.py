"""The broker of the Distributive Broker Protocol: which services exist, where, and whether they live (docs/catalog.md).

It never declares many services dead at once: if most are silent at the same time, it assumes that the fault is its own.
Start with `states.py`, then `registry.py`.
"""

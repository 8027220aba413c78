"""The broker of the Distributive Broker Protocol: who is out there, where, and is it alive (docs/catalog.md).

It calls nobody gone on its own silence: if most are silent at once, it doubts itself. Start with `states.py`, then
`registry.py`.
"""

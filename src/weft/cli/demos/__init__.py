"""The four demonstrations of chains, and the walk-through that counts which messages pass them (DEM-001 to DEM-007).

`programs` is what they do, without socket, clock or terminal; `live` runs them beside a real node, `virtual` beside
the nodes of a simulated tree; `walkthrough` can do both, row by row. No node needs this package. Start with `programs.py`.
"""

"""The four demonstrations of chains, and the walk-through that counts what they let pass (DEM-001 to DEM-007).

`programs` is what they do, without socket, clock or terminal; `live` runs them beside a real node, `virtual` beside
the nodes of a simulated tree; `walkthrough` does both, row by row. It is no part of a node. Start with `programs.py`.
"""

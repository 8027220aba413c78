"""This node's place in the tree: its parent, its neighbours, its name, and which node is root.

A node votes at most once per epoch, and sends its vote only after the promise is on disk. Start with `states.py`, then
`election.py`.
"""

"""The client libraries: what programs say in Python to the nodes and services of a fabric.

They never judge what a node says of the fabric, and share no state. Start with `chain`, whose names are those of `weft`
itself; whoever has read one has read them all, since what they have in common is in `link`.

link     opening, keeping and reading a connection; finding nodes; errors; the form for scripts
chain    messages and their filters: `weft.chain_client`, `weft.chain_sync`
store    values that everybody has: `weft.store`
catalog  who is there, and being there: `weft.catalog`
doc      documents that several people edit: `weft.doc`
"""

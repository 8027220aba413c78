"""The client libraries: what programs say in Python to the nodes and services of a fabric.

They decide nothing that a node decides, and share no state. Start with `chain`, whose names are those of `weft` itself;
the other three are built the same way. What all four have in common is in `link`.

link     opening, keeping and reading a connection; finding nodes; errors; the form for scripts
chain    messages that pass a node: `weft.chain_client`, `weft.chain_sync`
store    values that everybody has: `weft.store`
catalog  who is there, and being there: `weft.catalog`
doc      documents that several people edit: `weft.doc`
"""

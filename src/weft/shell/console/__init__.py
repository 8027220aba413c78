"""The console: the page `/console/` at a node's port +6, which shows the fleet as this node knows it (CON-001).

It reads a running node, and never changes anything. It keeps ten minutes of four metrics of each machine whose records pass
this node; the lake has the rest. Start with `picture.py`, what a viewer sees.

    lastvalues.py   of the records that pass here: last values, numbers received and lost, when a machine was heard
    picture.py      one picture of the fleet: machines, what is wrong with them, the four numbers
    tables.py       further pages: tables of configuration, alerts, catalog, store, documents, chains, lake, this node
    documents.py    a document as it was after any of its entries, who entered what, conflicts
    roads.py        the way of one record to the lake
    lake.py         questions to the lake
    history.py      four metrics of a machine, from ten minutes to a year
    commands.py     runs `weft` commands as processes, for what the node itself should not compute
    feed.py         one picture per second for all viewers: complete, or what has changed
    routes.py       the addresses below `/console/`
    limits.py       every number
    pages/          HTML, CSS and JavaScript, written by hand
"""

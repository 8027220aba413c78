"""The console: a page of a node at its port +6, `/console/`, which shows the fleet as this node knows it (CON-001).

It reads a running node and changes nothing. It keeps ten minutes of four metrics of each machine whose records pass
here, bounded in bytes; months are in the lake. Start in picture.py: what a viewer is shown.

    lastvalues.py   what has passed here: last values, numbers received and lost, when a machine was heard
    picture.py      one look at the fleet: machines, what is wrong with them, the four numbers
    tables.py       further pages: tables of configuration, alerts, catalog, store, documents, chains, lake, this node
    documents.py    a document as it was after any of its entries, who entered what, conflicts
    roads.py        the way of one record to the lake
    commands.py     `weft` commands in processes of their own, for what the node itself shall not compute; lake.py asks through it
    feed.py         a picture a second for all viewers together, as a whole or as what has changed
    limits.py       every number
    pages/          HTML, CSS and JavaScript, written by hand
"""

"""The client library of the store: what a program says in Python to a node that holds it (CLN-030).

It keeps no copy of the store, except for mirrors. Start with `client.py`.

finding.py   finds the node: by host:port, state directory or name, or the one that runs here
errors.py    the errors, one type per code
values.py    entries, changes, and paths as they are typed
link.py      one TCP connection: greeting, requests out, answers in
calling.py   requests over a connection that is renewed; which requests may be sent twice
streams.py   one stream on a connection of its own, so that a slow reader delays nothing else
watching.py  a watch that continues after a lost connection
mirror.py    a live local copy of a subtree
files.py     files of a store: saving, loading, comparing
auditing.py  whether two stores have the same entries
client.py    all of that as `weft.store.Client`
sync.py      the same for scripts, as `weft.store.SyncClient`
"""

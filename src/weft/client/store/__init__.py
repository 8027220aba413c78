"""The client library of the store: what a program says in Python to a node that holds it (CLN-030).

It holds no state of the store but what is asked for. Start with `client.py`.

finding.py   which node: host:port, a state directory, a name, or the one that runs here
errors.py    what can go wrong, one type per code
values.py    entries, changes, paths as they are typed
link.py      one TCP connection: greeting, requests out, answers in
calling.py   requests over a connection that comes back; which of them are repeated
streams.py   one stream on a connection of its own, so that a slow reader delays nobody
watching.py  a watch that goes on where it was, whatever became of the connection
mirror.py    a live local copy of a subtree
client.py    all of that as `weft.store.Client`
sync.py      the same for scripts, as `weft.store.SyncClient`
"""

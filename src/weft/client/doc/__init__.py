"""The client library of documents: what a program says in Python to a node that holds one (JAM-040).

It holds no document: the node does. Start with `client.py`.

finding.py    which node: a state directory, a name, an endpoint, or the one that runs here
errors.py     what can go wrong, one type per code
values.py     what is told: operations, conflicts, changes, what became of an own entry; references as they are typed
link.py       one connection: requests out, answers in, comes back by itself
watching.py   changes as they come, however slow who reads them is
client.py     all of that as `weft.doc.Client`
sync.py       the same for scripts, as `weft.doc.SyncClient`
logfile.py    a log as a file: written, read, checked (GSP-033)
replaying.py  the document as it stood, from the log alone (GSP-032)
"""

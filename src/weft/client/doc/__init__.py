"""The client library of documents: how a Python program reads and edits a document that a node holds (JAM-040).

It keeps no copy of the document. Start with `client.py`.

finding.py    finds the node: by state directory, name or endpoint, or the one that runs here
errors.py     the errors, one type per code
values.py     operations, conflicts and changes as a program gets them; references as they are typed
link.py       one connection, which is renewed when it breaks
watching.py   changes as they come, for slow readers too
client.py     all of that as `weft.doc.Client`
sync.py       the same for scripts, as `weft.doc.SyncClient`
logfile.py    a document's log as a file: written, read, checked (GSP-033)
replaying.py  the document as it was at an instant, from the log alone (GSP-032)
importing.py  files that become entries; exporting.py: documents as files (JAM-030)
"""

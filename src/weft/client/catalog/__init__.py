"""The client library of the catalog: for programs that look services up, and for services themselves (docs/catalog.md).

It caches nothing unless it is asked to (`Client(cache=True)`). Start with `client.py`, or with `service.py`.

Looking up:
errors.py       errors, one type per kind of refusal
entries.py      services, values and changes as a program gets them
asking.py       requests and their answers; a socket without an answer is replaced (CAT-024)
picking.py      chooses one instance of several
watch.py        changes of the catalog as they happen, none missed (CAT-043)
following.py    the logic of that, without sockets
subscribing.py  what a service publishes, its last values first (LVC-006)
tailing.py      log records as they come
tapped.py       copies of a service's messages as they pass (MON-001)
finding.py      which broker is meant; discovery.py: how it is found
lines.py        one socket
client.py       all of that as `weft.catalog.Client`
sync.py         the same for scripts, as `weft.catalog.SyncClient`

Being a service:
service.py      `weft.catalog.Service`
driving.py      runs the core that registers it
endpoints.py    its functions, and the calls they answer
speaking.py     what it publishes
handler.py      its log records
traffic.py      its messages as they pass
tapping.py      copies them while somebody wants that
sockets.py      its sockets
"""

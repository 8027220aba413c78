"""The client library of the catalog: what programs say to a broker, and to the services that it names (docs/catalog.md).

It caches nothing unless it is asked to (`Client(cache=True)`). Start with `client.py`; a service's own end is `service.py`.

errors.py       what can go wrong, one type per kind of refusal
entries.py      what is told: services, values, log lines
asking.py       requests and their answers: a DEALER that is made anew when it is silent (CAT-024)
picking.py      one instance of several
watch.py        changes of the catalog as they happen, none missed (CAT-043)
following.py    how that is found out of what a broker publishes
subscribing.py  what a service publishes, its last values first (LVC-006)
tailing.py      log records as they come
finding.py      which broker is meant; discovery.py: how it is found
lines.py        one socket
client.py       all of that as `weft.catalog.Client`
sync.py         the same for scripts, as `weft.catalog.SyncClient`
service.py      the other end: `weft.catalog.Service`
"""

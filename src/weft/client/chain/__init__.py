"""The client library of the chains: what a program beside a node says in Python (CLI-020 to CLI-026).

It decides nothing that the node decides. Start with `client.py`.

finding.py     which node: an endpoint, a state directory, a name, or the only one that runs here
connection.py  hello, beats, death, and coming back
sending.py     what was sent and has no final status yet, within the node's credit
outgoing.py    what leaves in one multipart
addressing.py  destinations of messages, places in a chain
checking.py    requests that a node could not decode are refused here
payloads.py    payloads as frames, and back
links.py       registrations and their handlers
message.py     what a handler is given, and what it may answer
recording.py   what passes a connection, as a file; replaying.py: that file, played to handlers
client.py      all of that as `weft.chain_client`
sync.py        the same for scripts, as `weft.chain_sync`
"""

"""The base of all four client libraries: opens connections, keeps them, and delivers what arrives (HSE-003).

It knows no protocol, and never decides whether a request is sent again: each client does. Start with `opening.py`, the
only place where a client connects.

opening.py   opens a connection: to which address, with which keys
keyring.py   the keys of a program on a closed fabric
finding.py   finds nodes of this machine
sockets.py   a ZeroMQ socket in the running loop
dealer.py    how programs connect to a node's chains and documents
channel.py   reads messages from a connection, and sends in order
backoff.py   how long to wait before the next attempt
inbox.py     what is read with `async for`, and the queue of unread items
waiting.py   synchronous clients, for scripts
errors.py    errors between a client and its server
limits.py    every number
"""

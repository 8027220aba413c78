"""The base of all four client libraries: opens connections, keeps them, and delivers what arrives (HSE-003).

It knows no protocol, and never decides what is said twice: that is each client's own. Start in opening.py, the only
place where a client connects.

opening.py where to and with which credentials: the one place that a connection begins finding.py the nodes of this
machine sockets.py a ZeroMQ socket in the running loop dealer.py the socket of programs of a node: never used for a
second connection channel.py reads a socket at its edges, and says things in order backoff.py how long to wait before
the next attempt waiting.py a client for scripts that wait, made of one that does not told.py what is read by `async
for`, and what waits to be read errors.py what can go wrong with any of them
"""

"""The one HTTP server of Weft: the pages of a node, the board and the console are routes of it (HSE-005, SEC-046).

It parses with h11, bounds whatever comes, and knows no page. It never answers a path that is not in its routes.
Start in messages.py: what a route is and what it may answer; assets.py mounts an application's files.

messages.py  requests, replies, streams of events, routes
gate.py      who may read and who may write
logins.py    people who may write for a while
server.py    connections: heads, bodies, answers, streams
assets.py    files of a directory as routes
limits.py    every number
"""

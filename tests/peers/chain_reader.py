"""A reader of the chains in ZeroMQ and MessagePack and nothing else: it misses nothing while it, or its node, is away."""

import os
import sys
from typing import Any

import msgpack
import zmq

seen: set[tuple[Any, ...]] = set()  # identities: a message may come again, and `mid` tells which one it is
me = os.urandom(16)


def attach() -> zmq.Socket[bytes]:
    """A fresh socket, hello, and the registration: the node knows the reader by its name."""
    node: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
    node.setsockopt(zmq.ROUTING_ID, b"\x01" + os.urandom(15))
    node.setsockopt(zmq.LINGER, 0)
    node.connect(sys.argv[1])
    hello = {"op": "hello", "v": 1, "role": "client", "name": "tally", "id": me, "pid": os.getpid()}
    reg = {"op": "reg", "reg": 1, "dir": "in", "type": "app.*", "confirm": True, "away": 600_000}
    for header in (hello, reg):
        node.send(msgpack.packb(header))
    return node


node, silent = attach(), 0
while True:
    if not node.poll(1_000):
        silent += 1
        node.send(msgpack.packb({"op": "beat"}))
        if silent == 5:  # the node is gone, or is another one by now
            node.close()
            node, silent = attach(), 0
        continue
    header, *frames = node.recv_multipart()
    said, silent = msgpack.unpackb(header), 0
    for message in said["m"] if said["op"] == "rec" else ():
        own = [frames.pop(0) for _ in range(message.get("n", 1))]
        if tuple(message["mid"]) not in seen:
            seen.add(tuple(message["mid"]))
            print(b"|".join(own).decode(), flush=True)
        node.send(msgpack.packb({"op": "conf", "reg": 1, "ids": [message["id"]]}))  # done with it
    if said["op"] in ("bye", "refuse"):
        node.close()
        node = attach()

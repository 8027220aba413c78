"""A client of the chains in ZeroMQ and MessagePack and nothing else: it sends one report, and tags what others send."""

import os
import sys
from typing import Any

import msgpack
import zmq

node: zmq.Socket[bytes] = zmq.Context.instance().socket(zmq.DEALER)
node.setsockopt(zmq.ROUTING_ID, b"\x01" + os.urandom(15))  # new for every socket
node.connect(sys.argv[1])  # ipc://…/chains.sock


def say(header: dict[str, Any], *frames: bytes) -> None:
    node.send_multipart([msgpack.packb(header), *frames])


def hear() -> tuple[dict[str, Any], list[bytes]]:
    while not node.poll(1_000):
        say({"op": "beat"})
    header, *frames = node.recv_multipart()
    return msgpack.unpackb(header), frames


say({"op": "hello", "v": 1, "role": "client", "name": "plain", "id": os.urandom(16), "pid": os.getpid()})
welcome, _ = hear()
assert welcome["op"] == "welcome", welcome
say({"op": "reg", "reg": 1, "dir": "out", "type": "demo.report", "at": 100, "access": "rw", "noself": True})
say({"op": "send", "m": [{"tag": 1, "type": "demo.report", "to": ["PARENTSOF"]}]}, b"<report/>")
while (heard := hear())[0]["op"] not in ("bye", "refuse"):  # refuse: the node is another one by now
    header, frames = heard
    if header["op"] == "rec":
        for message in header["m"]:
            own = [frames.pop(0) for _ in range(message.get("n", 1))]
            changed = own[0].replace(b"/>", b"><plain/></report>")
            say({"op": "next", "reg": header["reg"], "m": [{"id": message["id"], "n": len(own)}]}, changed, *own[1:])
    elif header["op"] != "beat":
        print(header, flush=True)

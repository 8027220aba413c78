"""A service that logs by pyzmq's own PUBHandler: registers its PUB by a plain REQ, then says one line of each level a second."""  # a script

import json
import logging
import struct
import sys
import time

import zmq
from zmq.log.handlers import PUBHandler

MINUTE_MS = 60_000  # it never beats


def main() -> None:
    """Until it is ended."""
    context = zmq.Context()
    sender = context.socket(zmq.PUB)
    port = sender.bind_to_random_port("tcp://127.0.0.1")
    record = {
        "name": "talker",
        "heartbeat": MINUTE_MS,
        "topics": [],
        "interfaces": {"pub": {"ip": "127.0.0.1", "port": port}},
    }
    asker = context.socket(zmq.REQ)
    asker.connect("tcp://127.0.0.1:5246")
    asker.send_multipart([b"UwU", struct.pack("<f", time.time()), json.dumps(record).encode()])
    sys.stdout.write(asker.recv_multipart()[0].decode() + "\n")
    logger = logging.getLogger("talker")
    logger.setLevel(logging.DEBUG)
    logger.addHandler(PUBHandler(sender, root_topic="log.talker"))
    for number in range(10_000):
        logger.info("step %d", number)
        logger.warning("disk %d %%", number)
        logger.error("of the motor %d", number)
        time.sleep(1)  # tidy: it is a program that works, and nobody waits for it


if __name__ == "__main__":
    main()

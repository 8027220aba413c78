"""Ask the broker of this machine by a plain REQ: `ask.py NAME...` prints the first frame of its answer.

`ask.py --correlate` asks for many services that nobody knows, each twice: once given up, once under another name. Its
socket numbers its requests and forgets those given up, so only the answer to the second may come.
"""  # a script

import json
import struct
import sys
import time

import zmq

ANSWER_MS = 10_000
QUESTIONS = 200


def main() -> None:
    """One question, or many."""
    correlates = sys.argv[1:] == ["--correlate"]
    asker = zmq.Context().socket(zmq.REQ)
    asker.setsockopt(zmq.LINGER, 0)
    asker.setsockopt(zmq.REQ_CORRELATE, int(correlates))
    asker.setsockopt(zmq.REQ_RELAXED, int(correlates))
    asker.connect("tcp://127.0.0.1:5246")
    if not correlates:
        sys.stdout.write(_asked(asker, *sys.argv[1:]))
        return
    answered = []
    for number in range(QUESTIONS):
        asker.send_multipart([b"u_U", _time(), b"given up"])
        answered.append(json.loads(_asked(asker, f"number {number}"))["service"])
    sys.stdout.write(json.dumps(answered == [f"number {number}" for number in range(QUESTIONS)]))


def _asked(asker: "zmq.Socket[bytes]", *names: str) -> str:
    asker.send_multipart([b"u_U", _time(), *(name.encode() for name in names)])
    if not asker.poll(ANSWER_MS):
        sys.exit("no answer")
    command, stamp, *body = asker.recv_multipart()
    if (command, len(stamp)) != (b"o_O", 4):
        sys.exit(f"{command!r} {stamp!r} {body!r}")
    return body[0].decode()


def _time() -> bytes:
    return struct.pack("<f", time.time())


if __name__ == "__main__":
    main()

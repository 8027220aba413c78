"""Print the changes of the catalog of this machine, and its logs, a line of JSON each, as a plain SUB hears them."""  # a script

import json
import sys

import zmq


def main() -> None:
    """Until it is ended."""
    ear = zmq.Context().socket(zmq.SUB)
    ear.connect(f"tcp://127.0.0.1:{sys.argv[1]}")
    for topic in (b"tick", b"catalog/", b"logs/"):
        ear.subscribe(topic)
    while True:
        topic, *body = ear.recv_multipart()
        said = json.loads(body[0])
        shown = {"topic": topic.decode("ascii", "replace"), **{key: said.get(key) for key in ("op", "name", "index")}}
        sys.stdout.write(json.dumps(shown) + "\n")


if __name__ == "__main__":
    main()

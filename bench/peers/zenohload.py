"""The far end of Zenoh: python -m bench.peers.zenohload PORT COUNT FILE. It says `ready`, and in the end when all was durable.

It listens, takes COUNT payloads and appends them to FILE; all that waits is one write and one fdatasync. Nobody is told.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any, Final

PLACE: Final = Path(__file__).parents[2] / "var/peers/zenoh"
KEY: Final = "bench/samples"


def is_there() -> bool:
    return (PLACE / "zenoh").is_dir()


def session(**endpoints: list[str]) -> Any:
    """A peer that listens, connects, and looks for nobody else."""
    sys.path.append(str(PLACE))
    import zenoh

    config = zenoh.Config()
    config.insert_json5("scouting/multicast/enabled", "false")
    for what in ("listen", "connect"):
        config.insert_json5(f"{what}/endpoints", str(endpoints.get(what, [])))
    return zenoh.open(config)


def main(port: str, count: int, file: str) -> None:
    to = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND)
    with session(listen=[f"tcp/127.0.0.1:{port}"]) as listening:
        subscriber = listening.declare_subscriber(KEY)
        print("ready", flush=True)
        while count > 0:
            waiting = [subscriber.recv()]
            while (sample := subscriber.try_recv()) is not None:
                waiting.append(sample)
            os.write(to, b"".join(sample.payload.to_bytes() for sample in waiting))
            os.fdatasync(to)
            count -= len(waiting)
        print(time.monotonic(), time.process_time(), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3])

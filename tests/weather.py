"""Cables that alter bits, for the rigs of all rooms (FLD-030)."""

import socket
from collections.abc import Callable

from tests.patience import PATIENCE_S
from weft.base.chance import Chance

Frames = list[bytes]
GREETING = b"\xff" + bytes(7) + b"\x01\x7f\x03\x00" + b"NULM".ljust(20, b"\0") + bytes(32)
"""Of ZMTP 3.0, with one bit altered: the mechanism is NULL."""


def flipped(chance: Chance, one_in: int) -> Callable[[Frames], Frames]:
    """One bit of one multipart in so many; sometimes a frame takes the next one's bytes along, as on a torn socket."""

    def weather(frames: Frames) -> Frames:
        if chance.randint(1, one_in) > 1:
            return frames
        if len(frames) > 2 and chance.randint(1, 4) == 1:
            return [*frames[:-2], frames[-2] + frames[-1]]
        at = chance.choice([index for index, frame in enumerate(frames) if frame])
        whole = bytearray(frames[at])
        whole[chance.randint(0, len(whole) - 1)] ^= 1 << chance.randint(0, 7)
        return [*frames[:at], bytes(whole), *frames[at + 1 :]]

    return weather


def greet_wrongly(host: str, port: int) -> None:
    """Let the next who connects there hear a greeting that was altered on the way, until it hangs up."""
    with socket.create_server((host, port)) as listening:
        listening.settimeout(PATIENCE_S)
        connection, _ = listening.accept()
        with connection:
            connection.settimeout(PATIENCE_S)
            connection.sendall(GREETING)
            while connection.recv(4_096):
                continue

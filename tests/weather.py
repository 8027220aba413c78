"""Cables that alter bits, for the rigs of all rooms (FLD-030)."""

from collections.abc import Callable

from weft.base.chance import Chance

Frames = list[bytes]


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

"""Messages of the catalog: any frames are one that comes back, or refused by a name (CAT-005, CAT-081)."""  # noqa: INP001  # a script

from house.running import attempt, run

from weft.wire.catalog import commands, publications, times

CODES = frozenset(["accepted", "malformed", "unknown-command"])
WALL_S = 1_795_227_299.0


def one(data: bytes) -> None:
    """Each frame stands behind a byte that says its length."""
    frames = []
    while data:
        size, data = data[0], data[1:]
        frames.append(data[:size])
        data = data[size:]
    for decode in (commands.decode, commands.decode_call):
        code, message = attempt(decode, frames)
        assert code in CODES, code
        if message is not None:
            assert frames == commands.encode(message), message
            assert times.answer(message.time, WALL_S), message
    for hear in (publications.decode, publications.decode_taken, publications.decode_publication):
        assert attempt(hear, frames)[0] in CODES, hear


if __name__ == "__main__":
    run(one)

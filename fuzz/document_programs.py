"""What programs ask of a session's node: any bytes are a request that comes back, or refused by a name."""  # noqa: INP001  # a script

from house.running import attempt, run

from weft.wire.document import programs


def one(data: bytes) -> None:
    """A request behind an id, and an answer."""
    code, asked = attempt(programs.decode, [b"1", data])
    assert code in ("accepted", programs.BAD_REQUEST), code
    if asked is not None:
        again = programs.decode(programs.encode_request(asked))
        assert programs.encode_request(asked) == programs.encode_request(again), asked
    code, answer = attempt(programs.decode_answer, [b"1", data])
    assert code in ("accepted", "bad-answer"), code
    if answer is not None:
        assert programs.encode(answer) == programs.encode(programs.decode_answer(programs.encode(answer))), answer


if __name__ == "__main__":
    run(one)

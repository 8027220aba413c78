"""Batches of samples: any body is one that comes back, or refused by a name (MEA-022)."""

from collections.abc import Iterable

from fuzz.house.running import attempt, run
from fuzz.house.vectors import hostile, payloads
from weft.wire import samples


def one(data: bytes) -> None:
    """Row by row, too."""
    code, batch = attempt(samples.decode, data)
    assert code in ("accepted", "malformed", "too-large"), code
    if batch is None:
        return
    body = samples.encode(batch)
    assert body == samples.encode(samples.decode(body)), batch
    assert len(batch.rows) == len(list(samples.explode(batch)))
    assert sum(len(part.rows) for part, _ in samples.encode_pieces(batch)) == len(batch.rows)


def seeds() -> Iterable[bytes]:
    """Batches of the pipeline's examples, and values that no number is."""
    yield from payloads("pipeline", of="explode")
    series = (samples.Series("cpu", "CPU", "percent", {"core": "0"}), samples.Series("up", "LOAD", "basic", {}))
    rows = [
        samples.Row(0, 0, 1, 2),
        samples.Row(1, 9, 0.5),
        samples.Row(0, 1_000, -(1 << 63)),
        samples.Row(1, 5, 1e308),
    ]
    yield samples.encode(samples.SampleBatch(1_795_227_290_000, series, rows))
    yield samples.encode(samples.SampleBatch(0, (), []))
    yield from (
        b"\x94\x01\x00\x91\x94\xa1a\xa1b\xa5basic\x80\x91\x93\x00\x00" + value for value in hostile("samples-value")
    )


if __name__ == "__main__":
    run(one)

"""Filters: any tables are filters or mistakes that are said; any message passes, is changed, or is dropped (CFG-071, CHN-060, CHN-061)."""

import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import attempt, outcomes, run
from tests.chains.views import at, parcel
from weft.cores.chains import expression
from weft.cores.chains.filters import NOWHERE
from weft.cores.chains.links import FilterLink
from weft.cores.chains.messageview import MessageView
from weft.cores.chains.settings import METRIC, FilterSpec, parse_filters
from weft.cores.chains.view import History, View
from weft.wire import samples

PAGE = Path(__file__).parents[1] / "docs" / "filters.md"
FORMATS = ("json", "msgpack", "raw", "text", "strange")
BODY = samples.encode(
    samples.SampleBatch(
        1_795_227_290_000,
        (samples.Series("cpu", "CPU", "percent", {"core": "0"}), samples.Series("mem", "MEMORY", "basic", {})),
        [samples.Row(0, 0, 7, 9), samples.Row(1, 5, 0.5), samples.Row(0, 9, 1 << 40, 3)],
    )
)


def one(data: bytes) -> None:
    """The text of a file, and the payloads of messages that go through its filters."""
    text, *payloads = frames_of(data) or [b""]
    tables = _tables(text.decode("utf-8", "replace"))
    specs, mistakes = parse_filters(tables)
    assert all(mistake[:1] == "E" for mistake in mistakes), mistakes
    outcomes.update(("mistake", mistake[:30]) for mistake in mistakes)
    if mistakes:
        return
    for spec in specs[:4]:
        link = FilterLink(spec, NOWHERE)
        for moment, payload in enumerate(payloads[:4]):
            _offer(link, spec, payload, moment)


def _tables(text: str) -> Any:
    try:
        assert text.count("[") < 200, "as the reader of files holds"
        return tomllib.loads(text).get("chains", {}).get("filter", [])
    except (ValueError, RecursionError, AssertionError, AttributeError):
        said = [text] if len(text) < 4_096 else []
        return [{"name": "f", "kind": "match", "types": ["app.x"], "when": source} for source in said]


def _offer(link: FilterLink, spec: FilterSpec, payload: bytes, moment: int) -> None:
    now = at(moment * 1_000_000_000)
    if spec.types == (METRIC,):
        code, batch = attempt(samples.decode, payload)
        if code == "accepted" and batch.rows:
            view = View(batch, b"o" * 16, History(100))
            link.offer(view, now)
            samples.encode(view.close())
        return
    message = MessageView(parcel(payload, FORMATS[payload[0] % len(FORMATS)] if payload else "json"))
    outcomes.add(("verdict", str(link.offer(message, now))))
    assert all(isinstance(frame, bytes) for frame in message.close()), spec


def seeds() -> Iterable[bytes]:
    """The filters of the manual, and expressions of every kind."""
    texts, inside = [], False
    for line in PAGE.read_text("utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```toml"
            texts += [""] if inside else []
        elif inside:
            texts[-1] += line + "\n"
    says = [
        b'{"load": 3, "level": 5, "host": "db2", "labels": {"rack": "7"}, "text": "hot"}',
        b"[1,2,null]",
        b"\x81\xa1a\x01",
        b"",
    ]
    for text in texts:
        yield joined([text.encode(), BODY, *says])
    for source in (
        'type == "app.x" && size < 100',
        'f.level > 3 || has(f.host) && f.host.startsWith("db")',
        "f.list.exists(x, x == 1)",
        "depth / 0 == 1",
        'f.text.matches("a+b*")',
        "timestamp(0) < timestamp(1)",
        "[1, 2, 3].map(x, x * x).size() == 3",
        "ts > 1 ? true : f.a.b.c",
    ):
        assert expression.mistakes(source) or source, source
        yield joined([source.encode(), *says])


if __name__ == "__main__":
    run(one)

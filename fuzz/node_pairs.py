"""What a root replicates: any keys and values are a plan, and a fleet, of what can be used of them (CFG-070, CFG-074)."""

from collections.abc import Iterable

from fuzz.house.choices import frames_of, joined
from fuzz.house.running import outcomes, run
from fuzz.house.vectors import hostile
from weft.cores.topology.atlas import Atlas
from weft.node import fleetkeys
from weft.node.census import Census, report_of
from weft.node.plan import plan_of, why_unusable

KEYS = tuple(
    f"/CONFIG/{key}"
    for key in [
        "global/heartbeat",
        "global/dead_after",
        "global/name",
        "web/members",
        "web/exclude",
        "web/collectors",
        "web/parent",
        "web/fanout",
        "web/prefer",
        "web/labels",
        "web/metric/cpu",
        "web/filter/busy",
        "web",
        "web/",
        "global/filter/x",
        "g2/metric/net",
        "g2/members",
    ]
)

NODE = b"n" * 16


def one(data: bytes) -> None:
    """Each frame is a value; its first byte says of which key."""
    pairs = {KEYS[frame[0] % len(KEYS)]: frame[1:] for frame in frames_of(data) if frame}
    fleet, wrong = fleetkeys.from_pairs(pairs.items())
    outcomes.update(("wrong", text[:30]) for text in wrong)
    written = fleetkeys.to_pairs(fleet)
    assert written == fleetkeys.to_pairs(fleetkeys.from_pairs(written)[0]), pairs
    _known(frames_of(data))
    plan = plan_of(pairs, ("web", "g2"))
    assert plan == plan_of(dict(reversed(pairs.items())), ("web", "g2")), pairs


def _known(values: list[bytes]) -> None:
    """What a root learns of its nodes, of their records and of what they report; and the tree that they are."""
    census, atlas = Census(), Atlas()
    for number, value in enumerate(values, 1):
        report = report_of(NODE, value)
        if report is not None:
            census.note(NODE, report.number, number)
        census.learn([(f"/TOPO/web/node/{NODE.hex()}", value)], number)
        atlas.apply(
            ((f"/TOPO/web/node/{NODE.hex()}", value), ("/TOPO/root", value), ("/CONFIG/web/members", value)), number
        )
        assert census.voters(NODE) >= 1, value
        census.rows()
        for key in KEYS:
            why = why_unusable(key, value)
            assert why is None or why, key


def seeds() -> Iterable[bytes]:
    """A fleet, and values that are wrong in one way each."""
    good = {
        0: b'"2s"', 1: b"5", 2: b'"lab"', 3: b'["web*.lab"]', 4: b'["10.0.0.9:1"]', 5: b'["a:1"]', 6: b'"site"',
        7: b"3", 8: b"true", 9: b'{"rack":"7"}', 10: b'{"detail":"CPU","rate":"1s"}',
        11: b'{"kind":"threshold","above":90}',
    }  # fmt: skip
    yield joined([bytes((key,)) + value for key, value in good.items()])
    for value in (
        b"",
        b"null",
        b"[]",
        b"{}",
        b'"x"',
        b"-1",
        b"1e999",
        b'{"detail":7}',
        b'{"endpoint":"10.0.0.1:1","level":"branch","tier":1,"parent":"10.0.0.2:1"}',
        *hostile("json", "config-json"),
    ):
        yield joined([bytes((key,)) + value for key in range(len(KEYS))])
        yield joined([bytes((10,)) + value])


if __name__ == "__main__":
    run(one)

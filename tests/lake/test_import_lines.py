"""Lines of foreign logs: what each is, whatever its bytes (PIP-096, PIP-098)."""

import gzip
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.examples import examples
from weft.base.errors import UserError
from weft.lake.importing.dcamp import DcampParser
from weft.lake.importing.delimited import CsvParser, Reading
from weft.lake.importing.found import (
    BLANK,
    HEADER,
    HEARTBEAT,
    Found,
    Many,
    Nothing,
    Parser,
    Refused,
    Sample,
)
from weft.lake.importing.limits import BLOCK_BYTES, LINE_BYTES_MAX
from weft.lake.importing.lines import blocks, opened
from weft.lake.importing.numbers import epoch_ns, instant_ns
from weft.lake.importing.openmetrics import OpenMetricsParser
from weft.lake.importing.running import FORMATS, sniffed

LATEST = 1_800_000_000_000_000_000
READING = Reading(UTC, LATEST)
VECTORS = {
    case["id"]: case
    for line in (Path(__file__).parents[1] / "vectors" / "pipeline.jsonl").read_text("utf-8").splitlines()
    if (case := json.loads(line))["id"].startswith("dcamp-")
}
LINE = b"1795226590369 source=h:1 value=95133.00 base=217439.00 detail=CPU config-name=proc config-seqid=4 type=percent"


def dcamp() -> DcampParser:
    return DcampParser(LATEST)


def told(found: Found) -> dict[str, Any]:
    """A found line in the words of the vectors."""
    if found is HEARTBEAT:
        return {"verdict": "hugz"}
    if isinstance(found, Refused):
        return {"verdict": "quarantine", "reason": found.reason}
    assert isinstance(found, Sample)
    if found.doubt:
        return {"verdict": "quarantine", "reason": found.doubt}
    about = found.about
    assert about.definition is not None
    said = {"verdict": "sample", "at_ms": found.at_ns // 1_000_000, "source": about.source, "base_long": found.base}
    said["value_long" if isinstance(found.value, int) else "value_double"] = found.value
    said |= {name: getattr(about.definition, name) for name in ("config_name", "detail", "type")}
    return said | {"config_number": about.config_number, "attributes": dict(about.attributes)}


@pytest.mark.proves("PIP-096")
@pytest.mark.parametrize("name", VECTORS)
def test_vectors_of_dcamp_lines(name: str) -> None:
    case = VECTORS[name]
    parser, line = dcamp(), bytes.fromhex(case["payload"])
    for _ in range(2):  # the second time by what is remembered
        found = told(parser.read(line))
        assert case["means"] == {key: found[key] for key in case["means"]}


@pytest.mark.proves("PIP-096")
@pytest.mark.parametrize(
    "line, expected",
    [
        (b"", BLANK),
        (LINE + b" value=1", Refused("undecodable")),
        (LINE + b"\r", Refused("undecodable")),
        (LINE.replace(b"h:1", b"h\0"), Refused("undecodable")),
        (LINE.replace(b"percent", b"purcent"), Refused("bad-type", "h:1")),
        (LINE.replace(b"seqid=4", b"seqid=x"), Refused("bad-number", "h:1")),
        (LINE.replace(b"seqid=4", b"seqid=9999999999999999999"), Refused("out-of-range", "h:1")),
        (LINE.replace(b"1795226590369", b"9795226590369000000"), Refused("out-of-range", "h:1")),
        (LINE.replace(b"proc", b"p" * 1025), Refused("too-long", "h:1")),
        (LINE.replace(b"proc", b"p" * LINE_BYTES_MAX), Refused("too-long")),
        (LINE.replace(b"95133.00", b"1_000"), Refused("bad-number", "h:1")),
        (LINE.replace(b"95133.00", b"1e999"), Refused("bad-number", "h:1")),
        (LINE.replace(b"95133.00", "\u0661".encode()), Refused("bad-number", "h:1")),
        (b"type=HUGZ", HEARTBEAT),
    ],
    ids=range(14),
)
def test_odd_dcamp_lines(line: bytes, expected: Found) -> None:
    assert expected == dcamp().read(line)


@pytest.mark.proves("PIP-096")
@pytest.mark.parametrize(
    "text, value",
    [
        ("9223372036854775807.00", (1 << 63) - 1),
        ("-9223372036854775807", 1 - (1 << 63)),
        ("9223372036854775808.00", 2.0**63),
        ("48730.", 48730),
        ("1e3", 1000.0),
        ("+.5", 0.5),
        ("-0.25", -0.25),
    ],
)
def test_numbers_keep_what_the_text_holds(text: str, value: float) -> None:
    found = dcamp().read(LINE.replace(b"95133.00", text.encode()))
    assert isinstance(found, Sample)
    assert (type(value), value) == (type(found.value), found.value)


@pytest.mark.proves("PIP-096")
def test_other_words_are_labels_and_values_may_hold_spaces_and_equal_signs() -> None:
    found = dcamp().read(LINE + b" mount=/a=b  c rack=7")
    assert isinstance(found, Sample)
    assert found.about.definition is not None
    assert (("mount", "/a=b c"), ("rack", "7")) == found.about.definition.labels


@pytest.mark.proves("PIP-096")
def test_a_remembered_line_is_read_as_a_new_one_is() -> None:
    """The short way knows a series by the bytes around its numbers; it may not believe bytes that hold numbers."""
    parser = dcamp()
    lines = [LINE, LINE.replace(b" base=217439.00", b""), LINE + b" database=7", LINE.replace(b"base", b"b", 1)]
    lines += [b"1795226590370 base=%d source=a value=1 detail=b config-name=c type=basic" % base for base in (1, 2)]
    lines += [LINE.replace(b"value=95133.00", value) for value in (b"value=1 2", b"value=1.5", b"value=", b"xvalue=3")]
    for line in [*lines, *lines]:
        alone = dcamp().read(line)
        found = parser.read(line)
        assert told(alone) == told(found)


def parsers() -> list[Parser]:
    wide = CsvParser(Reading(ZoneInfo("Europe/Berlin"), LATEST, wide="t"))
    made: list[Parser] = [dcamp(), CsvParser(READING), wide, OpenMetricsParser(READING)]
    made[1].read(b"at,value,source,rack")
    made[2].read(b"t,cpu,mem")
    return made


WORDS = st.lists(
    st.sampled_from(
        b"1795226590369| |=|value=|base=|type=basic|type=HUGZ|source=|detail=x|,|config-name=|1.0|nan|-|\0|\r|\xff|\xc3\xa9|"
        b'2026-11-21T01:43|0001-01-01|9999-12-31T23:59:60Z|999999999999999999999|"|{a="b",|}|m|#| # |\\|# TYPE m counter'.split(
            b"|"
        )
    ),
    max_size=12,
).map(b"".join)


@pytest.mark.proves("PIP-096")
@examples(100)
@given(lines=st.lists(st.one_of(WORDS, st.binary(max_size=40)), max_size=6))
def test_any_bytes_end_in_a_verdict(lines: list[bytes]) -> None:
    for parser in parsers():
        for line in lines:
            assert isinstance(parser.read(line.replace(b"\n", b"")), Sample | Refused | Nothing | Many)


TEXTS = st.text(st.characters(blacklist_characters="\0\r\n =", blacklist_categories=["Cs"]), min_size=1, max_size=8)


@pytest.mark.proves("PIP-096")
@given(
    at_ms=st.integers(946_684_800_000, LATEST // 1_000_000),
    value=st.one_of(st.integers(-(1 << 63) + 1, (1 << 63) - 1), st.floats(allow_nan=False, allow_infinity=False)),
    base=st.one_of(st.none(), st.integers(0, 1 << 62)),
    names=st.lists(TEXTS, min_size=3, max_size=3),
    order=st.randoms(use_true_random=False),
)
def test_what_is_printed_is_read_again(
    at_ms: int, value: float, base: int | None, names: list[str], order: Any
) -> None:
    if names[0] == "None":
        names[0] = "none"
    words = [f"source={names[0]}", f"value={value!r}", f"base={base}", f"detail={names[1]}"]
    words += [f"config-name={names[2]}", "type=rate"]
    order.shuffle(words)
    found = dcamp().read(" ".join([str(at_ms), *words]).encode())
    assert isinstance(found, Sample)
    assert found.about.definition is not None
    assert (at_ms * 1_000_000, value, base) == found[1:4]
    assert (*names, "rate") == (found.about.source, found.about.definition.detail, *found.about.definition[0:3:2])


# CSV.


def csv_lines(reading: Reading, *lines: str) -> list[Found]:
    parser = CsvParser(reading)
    return [parser.read(line.encode()) for line in lines]


def test_a_table_says_by_its_names_what_its_columns_are() -> None:
    header, found, short, long = csv_lines(
        READING,
        "\ufeffat,source,config-name,detail,type,value,base,rack\r",
        '2026-11-21T01:43:10.369Z,n7,"cpu, all",CPU,percent,95133.00,217439,7\r',
        "2026-11-21T01:43:10Z,n7",
        "a,b,c,d,e,f,g,h,i",
    )
    assert (HEADER, Refused("missing-field"), Refused("undecodable")) == (header, short, long)
    assert isinstance(found, Sample)
    assert found.about.definition is not None
    assert (1795225390369000000, 95133, 217439) == found[1:4]
    assert ("n7", "cpu, all", "CPU", "percent", "", (("rack", "7"),)) == (
        found.about.source,
        *found.about.definition,
    )


@pytest.mark.proves("PIP-098")
def test_columns_are_mapped_and_stamps_without_a_zone_are_of_the_one_that_is_said() -> None:
    reading = Reading(ZoneInfo("Europe/Berlin"), LATEST, {"at": "time", "value": "temp", "source": "host"})
    _, one, two, bad = csv_lines(reading, "time;host;temp", "2026-07-01 12:00:00;a;21.5", "1782900000;a;22", "x;a;1")
    assert isinstance(one, Sample)
    assert isinstance(two, Sample)
    assert one.about is two.about
    assert one.about.definition is not None
    assert ("a", "temp", "basic") == (one.about.source, one.about.definition.config_name, one.about.definition.type)
    assert int(datetime(2026, 7, 1, 10, tzinfo=UTC).timestamp()) * 10**9 == one.at_ns == two.at_ns
    assert (21.5, 22, Refused("bad-number", "a")) == (one.value, two.value, bad)


@pytest.mark.proves("PIP-098")
def test_in_the_wide_form_every_other_column_is_a_series() -> None:
    _, both, one, none, bad = csv_lines(
        Reading(UTC, LATEST, wide="time"), "time\tcpu\tmem", "1795226590369\t0.25\t7", "1795226591000\t\t8", "5\t\t", "1795226591000\tx\t9"
    )  # fmt: skip
    assert isinstance(both, Many)
    assert [("cpu", 0.25), ("mem", 7)] == [
        (row.about.definition.config_name, row.value)
        for row in both.rows
        if isinstance(row, Sample) and row.about.definition
    ]
    assert isinstance(one, Many)
    assert (1, BLANK) == (len(one.rows), none)
    assert isinstance(bad, Many)
    assert [Refused, Sample] == [type(row) for row in bad.rows]


@pytest.mark.parametrize("reading", [READING, Reading(UTC, LATEST, {"value": "v"}), Reading(UTC, LATEST, wide="v")])
def test_a_table_without_a_needed_column_is_refused_as_a_whole(reading: Reading) -> None:
    with pytest.raises(UserError) as refused:
        CsvParser(reading).read(b"at,valu")
    assert "no-column" == refused.value.code


# OpenMetrics.

EXPOSITION = r"""
# HELP requests how many
# TYPE requests counter
requests_total{instance="n7",code="200",say="a\"b\\c\nd"} 1027 1795226590.369 # {trace_id="x"} 1.0 1795226590.1
# TYPE temperature gauge
temperature{room="a, b} c"} 21.5 1795226590369
# TYPE took histogram
took_bucket{le="0.5"} 3 1795226590
took_sum 4.25 1795226590
took_count 4
broken{a="b"
nan_value NaN 1795226590
# EOF
""".strip().encode()


@pytest.mark.proves(
    "PIP-098", part="of OpenMetrics types, both kinds of stamps, exemplars, and a line without a time is refused"
)
def test_an_exposition_is_read_by_the_types_that_it_says() -> None:
    parser = OpenMetricsParser(READING)
    found = [parser.read(line) for line in EXPOSITION.split(b"\n")]
    samples = [one for one in found if isinstance(one, Sample)]
    rows = [
        (*one.about.definition[0:3:2], dict(one.about.definition.labels), one.at_ns, one.value)
        for one in samples
        if one.about.definition
    ]
    assert [
        ("requests_total", "rate", {"code": "200", "say": 'a"b\\c\nd'}, 1795226590369000000, 1027),
        ("temperature", "basic", {"room": "a, b} c"}, 1795226590369000000, 21.5),
        ("took_bucket", "rate", {"le": "0.5"}, 1795226590000000000, 3),
        ("took_sum", "rate", {}, 1795226590000000000, 4.25),
    ] == rows
    assert ["n7", "", "", ""] == [one.about.source for one in samples]
    refused = [one.reason for one in found if isinstance(one, Refused)]
    assert ["no-time", "undecodable", "bad-number"] == refused
    assert 1 == parser.exemplars


@pytest.mark.proves("PIP-098")
def test_lines_without_a_time_get_the_one_that_is_said() -> None:
    found = OpenMetricsParser(Reading(UTC, LATEST, at_ns=1795226590000000000)).read(b"up 1")
    assert isinstance(found, Sample)
    assert (1795226590000000000, 1) == found[1:3]


def test_a_hostile_line_is_not_read_over_and_over() -> None:
    line = b"m{" + b'a="b"  ,  ' * 6000 + b"!"
    assert len(line) < (64 << 10)
    assert Refused("undecodable") == OpenMetricsParser(READING).read(line)


@pytest.mark.parametrize("much", [b"7", b"0", b".7", b"-", b"7e7"])
def test_a_hostile_number_is_not_read_over_and_over(much: bytes) -> None:
    """One line of digits that is no number took an import five minutes."""
    text = (much * (60 << 10))[: 60 << 10] + b"x"
    line = b"1795226590369 source=h value=" + text + b" detail=CPU config-name=p type=basic"
    assert Refused("bad-number", "h") == dcamp().read(line)
    assert Refused("bad-number") == OpenMetricsParser(READING).read(b"m " + text + b" 1795226590")
    table = CsvParser(READING)
    table.read(b"at,value")
    assert Refused("bad-number") == table.read(b"1795226590369," + text)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("1795226590", 1795226590 * 10**9),
        ("1795226590.000000001", 1795226590 * 10**9 + 1),
        ("1795226590369.5", 1795226590369500000),
        ("1795226590369000", 1795226590369000000),
        ("1795226590369000001", 1795226590369000001),
        ("-1", -(10**9)),
        ("1e9", None),
        ("", None),
    ],
)
def test_counts_since_1970(text: str, expected: int | None) -> None:
    assert expected == epoch_ns(text)
    assert expected == instant_ns(text, UTC)


# Files.


def lines_of(read: Callable[[int], bytes]) -> tuple[list[bytes], bool, str]:
    found = list(blocks(read))
    last = found[-1] if found else None
    return [line for block in found for line in block.lines], bool(last and last.is_torn), last.fault if last else ""


@pytest.mark.proves("PIP-096")
@given(data=st.lists(st.sampled_from([b"a", b"\n", b"bc" * 40]), max_size=30).map(b"".join), step=st.integers(1, 50))
def test_lines_are_the_same_in_pieces_of_any_size(data: bytes, step: int) -> None:
    stream = io.BytesIO(data)
    lines, is_torn, fault = lines_of(lambda _: stream.read(step))
    expected = data.split(b"\n")
    assert (expected if expected[-1] else expected[:-1]) == lines
    assert (bool(expected[-1]), "") == (is_torn, fault)


@pytest.mark.proves("PIP-096")
def test_an_endless_line_is_one_line_and_the_file_goes_on() -> None:
    stream = io.BytesIO(b"x" * (3 * BLOCK_BYTES) + b"\n" + LINE + b"\n")
    lines, is_torn, _ = lines_of(stream.read)
    assert (2, (64 << 10) + 1, LINE, False) == (len(lines), len(lines[0]), lines[1], is_torn)


@pytest.mark.proves("PIP-096")
@pytest.mark.parametrize(
    "pack", [bytes, gzip.compress, zstandard.compress, lambda data: gzip.compress(data[:9]) + gzip.compress(data[9:])]
)
def test_packed_files_are_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    data = b"".join(b"%d\n" % number for number in range(1000))
    path = tmp_path / "log"
    path.write_bytes(pack(data))
    with opened(path) as read:
        assert (data.split(b"\n")[:-1], False, "") == lines_of(read)


@pytest.mark.proves("PIP-096")
@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress])
@settings(max_examples=25)
@given(cut=st.integers(0, 200), flipped=st.integers(0, 200))
def test_damaged_packed_files_end_where_they_are_damaged(
    pack: Callable[[bytes], bytes], cut: int, flipped: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    data = bytearray(pack(b"".join(b"%d " % number for number in range(100))))
    data[min(4 + flipped, len(data) - 1)] ^= 0x41
    path = tmp_path_factory.getbasetemp() / "damaged"
    path.write_bytes(data[: max(4, len(data) - cut)])
    with opened(path) as read:
        list(blocks(read))


@pytest.mark.parametrize(
    "text, expected",
    [
        (LINE, "dcamp"),
        (b"\n1795226590369 type=HUGZ", "dcamp"),
        (EXPOSITION, "openmetrics"),
        (b"up 1", "openmetrics"),
        (b'up{a="b"} 1', "openmetrics"),
        (b"at,value\n1,2", "csv"),
        (b"time\tcpu 1", "csv"),
        (b"", "csv"),
    ],
)
def test_the_format_is_seen(text: bytes, expected: str) -> None:
    assert expected in FORMATS
    (block, *_) = [*blocks(io.BytesIO(text + b"\n").read)]
    assert expected == sniffed(block)

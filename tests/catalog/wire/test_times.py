"""The time frame: every form that nodes write is read and answered in its own; nothing else is an error."""

import math
from collections.abc import Callable
from struct import pack, unpack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.catalog.wire.vectors import COMPUTED, group, payload
from weft.wire.catalog import times

READ_AT, ANSWERED_AT = 1795227299.0, 1795227306.0
UNITS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
WALLS = st.floats(1.6e9, 2.0e9)
STEPS = {"f32le": 128.0, "f32be": 128.0, "ascii": 1.0, "i32le": 1.0, "i32be": 1.0, "f64le": 1e-6, "f64be": 1e-6}


def _naive(frame: bytes, wall_s: float) -> tuple[str, float | None]:
    """The text of CAT-010, read aloud."""
    readings: list[tuple[str, float]] = []
    if len(frame) == 4:
        forms = {"f32le": "<f", "f32be": ">f", "i32le": "<I", "i32be": ">I"}
        readings = [(name, unpack(form, frame)[0]) for name, form in forms.items()]
    if len(frame) == 8:
        readings = [("f64le", unpack("<d", frame)[0]), ("f64be", unpack(">d", frame)[0])]
        for unit, parts in UNITS.items():
            readings += [(f"i64{order}-{unit}", unpack(form, frame)[0] / parts) for order, form in _ORDERS]
    digits = frame.split(b".")
    if 9 <= len(frame) <= 20 and len(digits[0]) in (9, 10) and all(part.isdigit() for part in digits):
        readings = [("ascii", float(frame))] if len(digits) == 1 or len(digits[1:]) == 1 == bool(digits[1]) else []
    near = [item for item in readings if abs(item[1] - wall_s) <= times.WINDOW_S]
    return min(near, key=lambda item: abs(item[1] - wall_s), default=("unknown", None))


_ORDERS = (("le", "<q"), ("be", ">q"))


def wrong_answers() -> list[str]:
    """Vectors whose answer would carry another time than it should."""
    answers = {name: times.answer(payload(COMPUTED[name]), ANSWERED_AT) for name in group("time-")}
    return [name for name, said in answers.items() if COMPUTED[name]["means"]["reply_frame"] != said.hex()]


@pytest.mark.proves("CAT-010")
@pytest.mark.parametrize("name", group("time-"))
def test_time_is_read_as_it_was_meant(name: str) -> None:
    means = COMPUTED[name]["means"]
    assert (means["format"], means["seconds"]) == times.read(payload(COMPUTED[name]), READ_AT)


@pytest.mark.proves("CAT-011")
def test_answer_has_the_time_in_the_format_of_the_request() -> None:
    assert [] == wrong_answers()
    for name in group("time-"):
        means = COMPUTED[name]["means"]
        if means["format"] != "unknown":
            assert means["reply_frame"] == times.write(means["format"], ANSWERED_AT).hex()


@pytest.mark.parametrize("form", ["f32le", "f64le"])
def test_answer_of_one_size_for_all_would_be_seen(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(times, "format_of", lambda *_: form)
    assert 10 < len(wrong_answers())


@pytest.mark.proves("CAT-010")
@given(st.binary(min_size=4, max_size=4) | st.binary(min_size=8, max_size=8) | st.binary(max_size=21), WALLS)
def test_reading_is_the_nearest_of_all_that_it_may_be(frame: bytes, wall_s: float) -> None:
    assert _naive(frame, wall_s) == times.read(frame, wall_s)


PALINDROMES = st.binary(min_size=4, max_size=4).map(lambda half: half + half[::-1])
NEAR_WHOLE = st.tuples(st.sampled_from(["<q", ">q"]), st.sampled_from([*UNITS.values()]), WALLS).map(
    lambda drawn: pack(drawn[0], int(drawn[1] * drawn[2]))
)


@given(PALINDROMES | NEAR_WHOLE | st.floats(1e9, 2.2e9).map(lambda value: pack("<d", value)), WALLS)
def test_eight_bytes_near_our_clock_are_read_as_the_nearest(frame: bytes, wall_s: float) -> None:
    assert _naive(frame, wall_s) == times.read(frame, wall_s)


def test_equally_near_readings_are_the_first_of_the_list() -> None:
    assert "f32le" == times.read(bytes.fromhex("4ed6d64e"), READ_AT).format
    assert "i32le" == times.read(bytes.fromhex("6b00006b"), READ_AT).format


@pytest.mark.proves("CAT-010")
@given(WALLS, st.sampled_from(times.FORMATS))
def test_time_comes_back_within_the_step_of_its_format(wall_s: float, form: str) -> None:
    found = times.read(times.write(form, wall_s), wall_s)
    assert found.seconds is not None
    step = STEPS.get(form) or 1.0 / UNITS[form.partition("-")[2]] + 1e-6
    assert abs(found.seconds - wall_s) <= step


EDGES: list[tuple[bytes, str]] = [
    (pack("<d", READ_AT + times.WINDOW_S), "f64le"),
    (pack("<d", READ_AT - times.WINDOW_S), "f64le"),
    (pack("<d", math.nextafter(READ_AT + times.WINDOW_S, math.inf)), "unknown"),
    (b"1795227299.", "unknown"),
    (b"1795227299.1234567890", "unknown"),
    (b"1795227299.123456789", "ascii"),
    (b"1795227299\n", "unknown"),
    ("١٧٩٥٢٢٧٢٩٩".encode(), "unknown"),
    (b"999999999", "unknown"),
    (b"01795227299", "unknown"),
]


@pytest.mark.proves("CAT-010")
@pytest.mark.parametrize("frame, expected", EDGES)
def test_bounds_of_a_time_are_exact(frame: bytes, expected: str) -> None:
    assert expected == times.read(frame, READ_AT).format


@pytest.mark.proves("CAT-011")
@given(st.binary(max_size=24), st.floats(0, 4e9))
def test_any_time_is_answered(frame: bytes, wall_s: float) -> None:
    answer = times.answer(frame, wall_s)
    assert answer == times.write(times.format_of(frame, wall_s), wall_s)
    if times.read(frame, wall_s).format == times.UNKNOWN:
        assert (8 if len(frame) == 8 else 4) == len(answer)
    elif len(frame) in (4, 8):
        assert len(frame) == len(answer)


@pytest.mark.parametrize("wall_s", [0.0, -1.0, 5e9, 1e12])
def test_clock_that_is_far_off_breaks_no_answer(wall_s: float) -> None:
    writers: list[Callable[[], bytes]] = [lambda form=form: times.write(form, wall_s) for form in times.FORMATS]  # type: ignore[misc]  # bound at once
    assert all(writer() for writer in writers)
    assert times.read(pack("<d", wall_s), wall_s).seconds == wall_s


@pytest.mark.parametrize(
    ("digits", "form"),
    [(b"9" * 9, "ascii"), (b"999999999.999999999", "ascii"), (b"9" * 8, times.UNKNOWN)],
)
def test_text_has_nine_characters_and_more(digits: bytes, form: str) -> None:
    assert form == times.read(digits, 999_999_999.0).format

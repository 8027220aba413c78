"""Reads manifests in their three forms: beside their Parquet file, as stubs in its place, or packed (LAK-017)."""

from pathlib import Path

import msgspec

from weft.lake.layout import SEGMENTS_PER_DIRECTORY, Layout
from weft.lake.manifest import Link, Manifest, SegmentFault, decode


def find_manifest(lake: Layout, stream: str, drain: str, number: int) -> bytes | None:
    """The bytes of a manifest or of its stub; None if there is neither."""
    try:
        with lake.manifest(stream, drain, number).open("rb", buffering=0) as file:
            return file.read()
    except FileNotFoundError:
        return _packed(lake, stream, drain, number)


def read_manifest(lake: Layout, stream: str, drain: str, number: int) -> bytes:
    """The bytes of a manifest or of its stub. SegmentFault `segment-gone` if there is neither."""
    line = find_manifest(lake, stream, drain, number)
    if line is None:
        raise SegmentFault("segment-gone", drain, number, "its manifest is missing")
    return line


def link_at(lake: Layout, stream: str, drain: str, number: int) -> Link:
    """A manifest or its stub, and its digest. SegmentFault `segment-gone`, or `segment-changed` as from `decode`."""
    return decode(read_manifest(lake, stream, drain, number), drain, number)


def stub_of(manifest: Manifest, digest: str) -> Manifest:
    """The stub of a segment whose Parquet file is deleted. It keeps the ranges."""
    return msgspec.structs.replace(manifest, gone=True, was=digest)


def skipped_of(manifest: Manifest, digest: str, why: str) -> Manifest:
    """The stub of a segment whose rows an operator has given up; `why` is not empty."""
    assert why
    return msgspec.structs.replace(manifest, skipped=why, was=digest)


def first_of_block(number: int) -> int:
    """The lowest segment number in the directory of `number`."""
    return max(1, number - number % SEGMENTS_PER_DIRECTORY)


def last_of_block(number: int) -> int:
    """The highest segment number in the directory of `number`."""
    return number - number % SEGMENTS_PER_DIRECTORY + SEGMENTS_PER_DIRECTORY - 1


def packed_path(lake: Layout, stream: str, drain: str, number: int) -> Path:
    """The file with the packed stubs of a number's block, one line each."""
    return lake.packed(stream, drain, last_of_block(number))


def _packed(lake: Layout, stream: str, drain: str, number: int) -> bytes | None:
    try:
        with packed_path(lake, stream, drain, number).open("rb") as lines:
            return next((line for place, line in enumerate(lines, first_of_block(number)) if place == number), None)
    except FileNotFoundError:
        return None

"""`weft lake tune`: lets Java load Spark's classes from a prepared file (PIP-104)."""

import sys

import msgspec

from weft.cli.kit.options import Flag


def tune(*, remove: Flag = False, json: Flag = False) -> None:
    """Store the Java classes that a driver loads in one file of at most 100 MB, so that it starts with less work.

    `weft lake tune` takes half a minute. Run it once, and again after an upgrade of Java or Spark. The file is in the user's
    state directory. Spark also starts without it, or with one that does not fit.

    Args:
        remove: delete the file instead.
        json: the outcome as one JSON object.
    """
    from weft.pipeline.classes import drop
    from weft.pipeline.session import default_state
    from weft.pipeline.tuning import keep

    if remove:
        count = drop(default_state())
        print(msgspec.json.encode({"removed": count}).decode() if json else f"removed {count} files")
        return
    summary = keep(default_state())
    if json:
        sys.stdout.write(msgspec.json.encode(summary._asdict(), enc_hook=str).decode() + "\n")
        return
    print(
        f"kept {summary.classes:,} of {summary.loaded:,} classes in {summary.path}: {summary.size / 1e6:,.0f} MB, {summary.seconds:.0f} s"
    )

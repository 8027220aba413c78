"""`weft lake tune`: let Java find Spark's classes ready when it starts (PIP-104)."""

import sys

import msgspec

from weft.cli.kit.options import Flag


def tune(*, remove: Flag = False, json: Flag = False) -> None:
    """Keep what a driver's start loads in one file of at most 100 MB: later starts on this machine take less work.

    Once, again after an upgrade of Java or Spark; takes half a minute. The file stands in the user's state directory and is
    never needed: where it does not fit, Spark starts as without.

    `weft lake tune`

    Args:
        remove: delete the file instead.
        json: what was made as one JSON object.
    """
    from weft.pipeline.classes import drop
    from weft.pipeline.session import default_state
    from weft.pipeline.tuning import keep

    if remove:
        count = drop(default_state())
        print(msgspec.json.encode({"removed": count}).decode() if json else f"removed {count} files")
        return
    kept = keep(default_state())
    if json:
        sys.stdout.write(msgspec.json.encode(kept._asdict(), enc_hook=str).decode() + "\n")
        return
    print(
        f"kept {kept.classes:,} of {kept.loaded:,} classes in {kept.path}: {kept.size / 1e6:,.0f} MB, {kept.seconds:.0f} s"
    )

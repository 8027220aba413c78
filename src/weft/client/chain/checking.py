"""Checks requests before they are sent: of an invalid one the node would only report that it cannot decode it."""

from weft.base.errors import UserError
from weft.client.chain.limits import NAME_CHARS_MAX, TIMEOUT_MS_MAX, WINDOW_MAX
from weft.wire import clients

WAYS = ("in", "out")
FAILS = (None, "open", "closed", "drop", "wait")


def check_name(name: str) -> None:
    """Raise UserError for a name that no client can have."""
    if not 1 <= len(name) <= NAME_CHARS_MAX:
        text = f"{name[:NAME_CHARS_MAX]!r} is not a valid name of a client"
        raise UserError("bad-name", text, f"a name of 1 to {NAME_CHARS_MAX} characters")


def check_registration(reg: clients.Reg, parallel: int) -> None:
    """Raise UserError for the first argument of a registration that no node would accept."""
    timeout_s = f"more than 0 and at most {TIMEOUT_MS_MAX // 1_000:,} seconds"
    for is_right, argument, mend in (
        (reg.dir in WAYS, f"on={reg.dir!r}", 'on="in" or on="out"'),
        (reg.fail in FAILS, f"fail={reg.fail!r}", 'fail="open", "closed", "drop" or "wait"'),
        (1 <= reg.timeout <= TIMEOUT_MS_MAX, f"timeout={reg.timeout / 1_000:g}", f"timeout= {timeout_s}"),
        (0 <= reg.away <= clients.AWAY_MS_MAX, f"away={reg.away / 1_000:g}", "away= 0 to 2,592,000 seconds"),
        (parallel >= 1, f"parallel={parallel}", "parallel= 1 or more"),
        (1 <= reg.window <= WINDOW_MAX, f"a window of {reg.window:,}", f"window= and parallel= up to {WINDOW_MAX:,}"),
    ):
        if not is_right:
            raise UserError("bad-registration", f"no node accepts a registration with {argument}", mend)

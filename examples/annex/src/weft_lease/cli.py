"""`weft lease`: take a name for a while, give it back, see who has it."""

from weft.cli.asking import order
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean


def lease(name: str, /, *, take: float = 0.0, free: Flag = False, who: str = "", port: int = 27_500) -> int:
    """Say who has the lease of a name, after taking it or giving it back: `weft lease backup --take 30`.

    Exit status 1 if it was to be taken and is not yours, 3 if nobody answers.

    Args:
        name: of what only one may do at a time.
        take: for how many seconds from now it shall be yours; again, to hold it for longer.
        free: give it back.
        who: whose it is; left out: the node's that is asked.
        port: first of that node's ten ports.
    """
    verb = "take" if take else "free" if free else "look"
    answer = order(port, "lease", verb=verb, name=name, who=who, span_s=take)
    says = {"held": f"{answer['holder']} has it for {answer['left_s']:.1f} s", "free": "nobody has it"}
    print(clean(f"{name}: {says.get(answer['code'], 'no room, nothing has changed')}"))
    return NOT_SO if take and not answer["is_yours"] else DONE

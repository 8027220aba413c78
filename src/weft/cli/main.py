"""The command `weft`: parses, calls, prints; its rooms are imported only when they are asked for."""

import sys
from typing import Final

from cyclopts import App, CycloptsError

from weft import __version__
from weft.base.errors import StorageFailed, UserError, exit_code

app = App(
    name="weft",
    help="Weave a fleet of machines into one fabric, and query all of it.",
    version=__version__,
    help_epilogue="Exit status: 0 done, 2 wrong usage, 69 no such node, 74 disk failed, 75 lease held, 77 name taken, 78 no Java.",
)

ROOMS: Final[dict[str, str]] = {
    "up": "weft.cli.up:up",
    "demo": "weft.cli.demo:demo",
    "status": "weft.cli.status:status",
    "sql": "weft.cli.sql:sql",
    "lake": "weft.cli.lake:app",
    "drain": "weft.cli.drain:drain",
    "journal": "weft.cli.journal:app",
    "sim": "weft.cli.sim:app",
}
for name, where in ROOMS.items():
    app.command(where, name=name)


def main() -> None:
    """Run the command line; every error of a person is one sentence and its mend, with a documented exit code."""
    try:
        result = app(exit_on_error=False, print_error=False)
    except CycloptsError as error:
        sys.exit(_complain(f"{error}\n  try: weft --help", "usage"))
    except UserError as error:
        sys.exit(_complain(str(error), error.code))
    except StorageFailed as error:
        sys.exit(_complain(f"{error}\n  try: weft journal verify, and look at the disk", "storage-failed"))
    sys.exit(result if isinstance(result, int) else 0)


def _complain(text: str, code: str) -> int:
    print(f"weft: {text}", file=sys.stderr)
    return exit_code(code)


if __name__ == "__main__":
    main()

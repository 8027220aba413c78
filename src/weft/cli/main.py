"""The command `weft`: a node's file becomes its node at once, every other command is one of `nouns.py`."""

import sys


def main() -> None:
    """Run the command line. A user's mistake is one sentence with a mend, and has a documented exit status."""
    try:
        _run()
    except KeyboardInterrupt:  # while modules were loaded: nothing has been done yet
        from weft.cli.kit.exits import INTERRUPTED

        sys.exit(INTERRUPTED)


def _run() -> None:
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "up" and not words[1].startswith("-"):
        from weft.cli.start import start  # loading the parser of commands would take half as long as a node's start

        start(words[1])
    from weft.cli.kit.ending import ended
    from weft.cli.nouns import run

    sys.exit(ended(run))


if __name__ == "__main__":
    main()

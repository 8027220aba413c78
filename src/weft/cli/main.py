"""The command `weft`: a node's file becomes its node at once, every other command is one of `nouns.py`."""

import sys


def main() -> None:
    """Run the command line; every user error is one sentence and its mend, with a documented exit status."""
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "up" and not words[1].startswith("-"):
        from weft.cli.start import start  # what parses commands takes half as long as a node needs to start

        start(words[1])
    from weft.cli.kit.ending import ended
    from weft.cli.nouns import run

    sys.exit(ended(run))


if __name__ == "__main__":
    main()

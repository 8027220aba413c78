"""`weft completion`: completions for the Tab key of a shell (OPS-004)."""

import sys
from pathlib import Path
from typing import Final, Literal

from weft.base.errors import UserError
from weft.cli.kit.options import Flag

Shell = Literal["bash", "zsh", "fish"]
PLACES: Final[dict[str, tuple[str, str]]] = {
    "bash": (
        ".local/share/bash-completion/completions/weft",
        "it works in the next shell, if bash-completion is installed",
    ),
    "zsh": (
        ".local/share/zsh/site-functions/_weft",
        "in ~/.zshrc, before compinit: fpath+=(~/.local/share/zsh/site-functions)",
    ),
    "fish": (".config/fish/completions/weft.fish", "it works in the next shell"),
}
"""The script's path below the user's home, and what is left to do, by shell."""
ZSH: Final = """
if [[ $funcstack[1] == _weft ]]; then _cyclopts_weft "$@"; else compdef _cyclopts_weft weft; fi
"""
"""What the script for zsh leaves out: zsh calls the file by its name, or a user sources it."""


def completion(shell: Shell, /, *, install: Flag = False) -> None:
    """Print a script that makes a shell complete Weft's commands and options: `weft completion bash --install`.

    Args:
        shell: bash, zsh or fish.
        install: write the script to where this user's shell looks for it, and print that path.
    """
    from weft.cli.nouns import ROOMS, app

    for annexed in [name for name in app if not name.startswith("-") and name not in ROOMS]:
        del app[annexed]  # annexes come and go, but the shell keeps this script
    script = app.generate_completion(prog_name="weft", shell=shell) + (ZSH if shell == "zsh" else "")
    if not install:
        sys.stdout.write(script)
        return
    below, more = PLACES[shell]
    place = Path.home() / below
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(script, "utf-8")
    except OSError as error:
        mend = f"weft completion {shell} > a file that {shell} reads"
        raise UserError("no-file", f"{place} cannot be written: {error.strerror}", mend) from None
    print(f"{place}: {more}")

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
        "it is there in the next shell, where bash-completion is installed",
    ),
    "zsh": (
        ".local/share/zsh/site-functions/_weft",
        "in ~/.zshrc, before compinit: fpath+=(~/.local/share/zsh/site-functions)",
    ),
    "fish": (".config/fish/completions/weft.fish", "it is there in the next shell"),
}
"""Below the home of the user, and what is still to do."""


def completion(shell: Shell, /, *, install: Flag = False) -> None:
    """Print what makes a shell complete commands, options and names of Weft: `weft completion bash --install`.

    Args:
        shell: bash, zsh or fish.
        install: write it where that shell looks, for this user, and say where that is.
    """
    from weft.cli.nouns import ROOMS, app

    for annexed in [name for name in app if not name.startswith("-") and name not in ROOMS]:
        del app[annexed]  # they change, and the shell would not read them again
    script = app.generate_completion(prog_name="weft", shell=shell)
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

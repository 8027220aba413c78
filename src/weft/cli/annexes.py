"""`weft annexes`: protocols that are installed beside Weft, and their nouns of this command line (HSE-007)."""

import json as to_json
from collections.abc import Container, Iterator
from importlib.resources import files

from weft.base.errors import UserError
from weft.cli.kit.exits import DONE, NOT_SO
from weft.cli.kit.options import Flag
from weft.cli.kit.text import clean
from weft.node import installed
from weft.node.annexes import admit


def annexes(name: str = "", /, *, json: Flag = False) -> int:
    """List the protocols that are installed beside Weft, or print the page of one: `weft annexes lease`.

    A node runs one if its file has a table of that name. Exit status 1 if one of them cannot be used.

    Args:
        name: print the page of this annex; left out: list all.
        json: the list as JSON.
    """
    if name:
        print(page_of(name))
        return DONE
    listed = [about(each) for each in installed.names()]
    if json:
        print(to_json.dumps(listed))
    else:
        for each in listed:
            print(clean(f"{each['name']:16}{each['version']:24}{each['wrong'] or each['what']}"))
        if not listed:
            print("no annex is installed")
    return NOT_SO if any(each["wrong"] for each in listed) else DONE


def page_of(name: str) -> str:
    """The page of an annex; UserError `no-annex` if there is none of that name, or it has no page."""
    if name not in installed.names():
        raise UserError("no-annex", f"no annex is called {name}", "weft annexes lists those that are installed")
    annex = admit(name)
    if not annex.page:
        raise UserError("no-annex", f"the annex {name} has no page", "its package may have one elsewhere")
    return (files(annex.settings.__module__.partition(".")[0]) / annex.page).read_text("utf-8")


def about(name: str) -> dict[str, str]:
    """A row of the list; `wrong`: why it cannot be used."""
    row = {"name": name, "version": installed.version_of(name), "what": "", "wrong": ""}
    try:
        return row | {"what": admit(name).what}
    except UserError as error:
        return row | {"wrong": str(error).splitlines()[0]}


def commands(wanted: str, taken: Container[str]) -> Iterator[tuple[str, str, str]]:
    """Name, place and sentence of each noun that an annex brings; Weft's own are never replaced.

    Unusable annexes are left out, and `weft annexes` says why; UserError `bad-annex` if the wanted one is unusable.
    """
    for name in installed.names():
        try:
            annex = admit(name)
        except UserError:
            if name == wanted:
                raise
            continue
        if annex.command and name not in taken:
            yield name, annex.command, annex.what

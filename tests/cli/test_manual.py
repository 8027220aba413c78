"""What the command line says of itself: the manual, completion, exit statuses, JSON of every command (OPS-004)."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.house.requirements import ROOT
from tests.tidy.tree import parsed
from weft.base.errors import EXIT_CODES
from weft.cli.completion import PLACES, Shell, completion
from weft.cli.manual import STATUSES, VARIABLES, Command, Option, commands, man, markdown, roff
from weft.cli.nouns import ROOMS, app

PAGE = ROOT / "docs" / "commands.md"
HEAD = """# All commands

Made from the help of the commands; `weft man` prints the same as a page of the manual (`weft man --install`, then `man weft`),
`weft completion bash --install` (or zsh, fish) teaches it to the shell.

## Exit status

The same of all commands; a process of a node ends with them, too.

{statuses}

What nobody foresaw is a fault of Weft: one sentence and status 70, and a file that says where it happened; with `WEFT_TRACEBACK=1`
it is shown instead.

## Environment

{variables}

## JSON

Every command that answers has `--json`, and says beside that option what comes. It goes to the standard output, in UTF-8: one
object or array on one line, or, of what has no end or no bound, an object per line. Names are only ever added. An error is
no JSON: it is a sentence on the standard error, and the exit status says which kind. The fields of a node's status are in
[status.md](status.md), those of its events in [events.md](events.md), those of tables in [tables.md](tables.md).

## Commands
"""
ENDLESS = {
    "up": "a node until it is stopped",
    "join": "becomes a node; --stay prints where its file is",
    "catalog serve": "a broker until it is stopped",
    "doc join": "a node until it is stopped",
    "doc open": "a node until it is stopped",
    "debug dump": "prints lines of JSON",
    "completion": "prints a script",
    "man": "prints a page",
    "sim shrink": "writes a plan",
    "sim play": "prints a transcript",
}
"""Commands without --json, and why."""


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `weft completion bash` prints, as a file."""
    words = [sys.executable, "-m", "weft.cli.main", "completion", "bash"]
    place = tmp_path_factory.mktemp("shell") / "weft.bash"
    place.write_text(subprocess.run(words, capture_output=True, text=True, check=True).stdout, "utf-8")
    return place


@pytest.fixture(scope="module")
def listed() -> list[Command]:
    return [one for one in commands(app) if one.name.split()[0] in ROOMS]


def table(rows: dict[str, str]) -> str:
    return "\n".join(["| | |", "|---|---|", *(f"| {key} | {says} |" for key, says in rows.items())])


@pytest.mark.generates
@pytest.mark.proves("WEL-002", part="the reference of commands is made from code")
def test_the_page_has_every_command(committed: Callable[[Path, str], None], listed: list[Command]) -> None:
    statuses = table({str(EXIT_CODES[code]): says for code, says in STATUSES.items()})
    variables = table({f"`{name}`": says for name, says in VARIABLES.items()})
    committed(PAGE, HEAD.format(statuses=statuses, variables=variables) + markdown(listed))


@pytest.mark.proves("OPS-004", part="--json of every command that answers")
def test_every_command_answers_in_json_or_is_known_not_to(listed: list[Command]) -> None:
    assert set(ENDLESS) == {one.name for one in listed if "--json" not in {option.name for option in one.options}}


@pytest.mark.proves("OPS-004", part="a page of the manual, made from the help")
def test_each_argument_and_option_of_every_command_is_explained(listed: list[Command]) -> None:
    assert [] == [f"{one.name} {option.name}" for one in listed for option in one.options if not option.says]


@pytest.mark.proves("OPS-004", part="exit codes are the same everywhere: one table, which the help and the manual show")
def test_exit_statuses_are_those_of_one_table() -> None:
    assert sorted(set(EXIT_CODES.values())) == [EXIT_CODES[code] for code in STATUSES]
    assert app.help_epilogue is not None
    said = [int(number) for number in re.findall(r"\b(\d+) [a-zA-Z]", str(app.help_epilogue))]
    assert [EXIT_CODES[code] for code in STATUSES] == said


def is_own_status(value: ast.expr | None) -> bool:
    """It is a number that stands there, and says more than yes or no."""
    return isinstance(value, ast.Constant) and type(value.value) is int and value.value > 1


@pytest.mark.proves("OPS-004", part="exit codes are the same everywhere: one table, which the help and the manual show")
def test_no_command_has_a_status_of_its_own() -> None:
    found = []
    for path in sorted((ROOT / "src" / "weft" / "cli").rglob("*.py")):
        module = parsed(path.read_text("utf-8"))
        ends = [call for call in module.of(ast.Call) if ast.unparse(call.func) in {"sys.exit", "SystemExit"}]
        said = [node.value for node in module.of(ast.Return)] + [value for call in ends for value in call.args]
        found += [f"{path.name}: {ast.unparse(value)}" for value in said if value and is_own_status(value)]
    assert [] == found


@pytest.mark.proves("OPS-004", part="weft --help loads no core, and nothing that reads marks")
def test_the_list_of_commands_loads_little() -> None:
    program = (
        "import sys; sys.argv = ['weft', '--help']\n"
        "from weft.cli.main import main\n"
        "try: main()\n"
        "except SystemExit: pass\n"
        "print(*sorted(sys.modules), sep='\\n', file=sys.stderr)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = set(ran.stderr.split())
    assert "cyclopts" in loaded
    heavy = ("weft.cores", "weft.node.channels", "zmq", "markdown_it", "pygments", "asyncio", "pyarrow", "duckdb")
    assert [] == [name for name in sorted(loaded) if name.startswith(heavy)]


@pytest.mark.proves("OPS-004", part="a page of the manual, made from the help")
def test_a_page_of_the_manual_says_each_command_with_what_it_takes() -> None:
    one = Command(
        "lake as-of",
        "Ask `then`.\n\n  $ weft lake as-of\n\n.5 of it",
        (Option("TABLE", "a name", True), Option("--at, -a", "", False)),
    )
    expected = r"""
.SS weft lake as\-of [TABLE] [options]
.PP
Ask then.
.PP
.nf
  $ weft lake as\-of
.fi
.PP
\&.5 of it
.TP
\fBTABLE\fR
a name
.TP
\fB\-\-at, \-a\fR
\&
.SH EXIT STATUS
.TP
.B 0
done
"""
    assert expected in roff([one])


@pytest.mark.proves("OPS-004", part="a page of the manual, made from the help")
def test_the_manual_is_installed_for_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    man(install=True)
    place = tmp_path / ".local" / "share" / "man" / "man1" / "weft.1"
    assert f"{place}\n" == capsys.readouterr().out
    page = place.read_text("utf-8")
    assert r".SS weft config rollback [NUMBER] [PREFIX] [options]" in page.splitlines()


@pytest.mark.prove("shells")
@pytest.mark.proves("OPS-004", part="completion for bash, zsh and fish")
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["weft", "conf"], ["config"]),
        (["weft", "config", "roll"], ["rollback"]),
        (["weft", "status", "--jso"], ["--json"]),
        (["weft", "sim", "run", "--se"], ["--seed"]),
    ],
)
def test_bash_offers_what_can_follow(script: Path, words: list[str], expected: list[str]) -> None:
    said = (
        f"source {script}; COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; COMPREPLY=(); _weft; "
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    offered = subprocess.run(["bash", "--norc", "-c", said], capture_output=True, text=True, check=True)
    assert expected == [each.strip() for each in offered.stdout.split()]


@pytest.mark.prove("shells")
@pytest.mark.proves("OPS-004", part="completion for bash, zsh and fish")
@pytest.mark.parametrize(
    ("shell", "line"),
    [
        ("zsh", "#compdef weft"),
        ("fish", "complete -c weft -n __fish_use_subcommand -a 'up' -d 'Run one node here.'"),
    ],
)
def test_completion_is_installed_where_each_shell_looks(
    shell: Shell, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    completion(shell, install=True)
    below, more = PLACES[shell]
    assert f"{tmp_path / below}: {more}\n" == capsys.readouterr().out
    assert line in (tmp_path / below).read_text("utf-8").splitlines()


@pytest.mark.proves("MET-001", part="the Tab key offers the names of details")
def test_names_of_details_are_offered() -> None:
    words = [sys.executable, "-m", "weft.cli.main", "__complete", "metrics", "DISK_RE"]
    ran = subprocess.run(words, capture_output=True, text=True, check=True, env=dict(os.environ))
    assert "DISK_READONLY\t1 if a mounted disk can only be read, else 0" in ran.stdout.splitlines()

"""What docs/doc.md shows works as it stands there."""

import asyncio
import re
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.client.docsession import Hall
from tests.client.node import in_loop
from tests.patience import PATIENCE_S
from weft import doc
from weft.cli.doc import app
from weft.client.doc.errors import BY_CODE
from weft.cores.document import limits
from weft.cores.document.fold.schema import Schema
from weft.cores.document.serving_edits import EDITS
from weft.cores.document.serving_reads import READS
from weft.cores.document.serving_words import attributes_of, chains_of, payload_of, split
from weft.node.doctable import DocSessionTable, DocTimingTable

PAGE = Path(__file__).parents[2] / "docs" / "doc.md"
TEXT = PAGE.read_text("utf-8")
PROGRAMS = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
TOML = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)


def part(name: str) -> str:
    """What stands below a heading."""
    return TEXT.partition(f"\n## {name}\n")[2].partition("\n## ")[0]


@in_loop
async def test_the_program_of_the_page_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    [program] = PROGRAMS
    names: dict[str, Any] = {}
    async with Hall(tmp_path) as hall:
        monkeypatch.setenv("WEFT_DOC", str(hall.desks[0].state))
        exec(compile(re.sub(r"(?m)^asyncio\.run\(.*$", "", program), str(PAGE), "exec"), names)  # the page's own words
        await asyncio.wait_for(names["main"](), PATIENCE_S)
    first, *rest = capsys.readouterr().out.splitlines()
    assert '<jam number="3"><penalty code="C" person="123" team="home"></penalty></jam>' == first
    assert ["add period=1 jam=3 applied", "set eid="] == [rest[0], rest[1][:8]]


def test_the_page_names_every_command_and_no_other() -> None:
    known = {name for name in app if not name.startswith("-")}
    typed = set(re.findall(r"weft doc ([a-z]+)", TEXT))
    named = {
        word
        for cell in re.findall(r"(?m)^\| (.*?) \|", part("What one types"))
        for word in re.findall(r"`(?:weft doc )?([a-z]+)", cell)
    }
    assert (set(), set()) == (typed - known, known - named)


def test_the_page_names_every_setting() -> None:
    settings = part("Settings")
    rows = {word for row in re.findall(r"(?m)^\| (.*?) \|", settings) for word in re.findall(r"`([a-z_]+)`", row)}
    assert set(DocSessionTable.__struct_fields__) == rows
    assert [] == [name for name in DocTimingTable.__struct_fields__ if f"`{name}`" not in settings]
    assert set(tomllib.loads(TOML[0])["doc"]["session"]["Hall 5"]) <= rows


def test_the_page_names_every_verb_of_programs() -> None:
    rows = re.findall(r"(?m)^\| (.*?) \|", part("What a program may ask"))
    named = {word for row in rows for word in re.findall(r"`([a-z]+)`", row)}
    assert {*READS, *EDITS, "sessions", "watch", "heard", "end"} == named


def test_the_page_says_every_public_name_and_every_error() -> None:
    assert [] == [name for name in doc.__all__ if name not in part("In a program")]
    assert {kind.__name__ for kind in BY_CODE.values()} <= set(doc.__all__)


def test_the_schema_of_the_page_is_one() -> None:
    schema = Schema.load(TOML[1])
    assert ("fair", {"hall": {"stand": {}}}) == (schema.name, chains_of(schema.chains))


def test_what_is_typed_on_the_page_can_be_read() -> None:
    chains = chains_of(Schema.load("derby").chains)
    lines = re.findall(r"(?m)^\$ weft doc (add|set) (.*)$", TEXT) + re.findall(
        r"`weft doc (add|set) ([^`]*=[^`]*)`", TEXT
    )
    assert len(lines) >= 6
    for verb, line in [row for row in lines if "WHERE" not in row[1]]:
        words = [word for word in shlex.split(line) if "…" not in word]
        words = words[: words.index("--text")] if "--text" in words else words
        words = words[: words.index("-a")] if "-a" in words else words
        typed = split(words, chains)
        assert typed.reference, line
        made = payload_of(typed.rest, "") if verb == "add" else attributes_of(typed.rest)
        assert made is not None


@pytest.mark.proves("DOC-056")
def test_the_page_tells_the_limits_that_are_in_force() -> None:
    said = part("Limits")
    numbers = {int(number.replace(",", "")) for number in re.findall(r"[0-9][0-9,]*", said)}
    assert {
        *(limits.EMITTED_BYTES_MAX, limits.DEPTH_MAX, limits.ELEMENTS_MAX, limits.RATE, limits.BURST),
        *(limits.DOCUMENT_ELEMENTS_MAX, limits.DOCUMENT_DEPTH_MAX, limits.OPERATIONS_MAX, limits.SOURCES_MAX),
        *(limits.PEERS_MAX, limits.WATCHERS_MAX),
    } <= numbers
    for what in ("fast clock", "removed element is lost", "Siblings", "nothing can be moved", "are not merged"):
        assert what in said


def test_every_link_of_the_page_leads_somewhere() -> None:
    heads = {re.sub(r"[^a-z0-9 -]", "", head.lower()).replace(" ", "-") for head in re.findall(r"(?m)^## (.*)$", TEXT)}
    assert [] == [link for link in re.findall(r"\]\(#([^)]*)\)", TEXT) if link not in heads]

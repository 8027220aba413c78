"""Words that must not stand in a file: hosts, paths of one machine, promises to finish later, silent exceptions."""

import ast
import re
from collections.abc import Iterator
from typing import Any, Final

import re2  # type: ignore[import-untyped]  # the wheel has no types; it reads the whole tree in a tenth of the time

from tests.tidy.tree import Finding, Source


def _any_of(*parts: str) -> Any:
    """A pattern of pieces joined at `~`, so that this file does not contain what it looks for."""
    return re2.compile("(?im)" + "|".join(part.replace("~", "") for part in parts))


HOSTS: Final = _any_of(
    r"\bpypi~\.org\b",
    r"\bpython~hosted\.org\b",
    r"\bregistry~\.npmjs\.org\b",
    r"\bregistry~\.yarnpkg\.com\b",
    r"\brepo1?~\.maven\.(?:apache\.)?org\b",
    r"\bcrates~\.io\b",
    r"\bproxy~\.golang\.org\b",
)
MACHINES: Final = _any_of(r"(?:^|[^\w./-])/(?:work|home/\w+|root|Users/\w+|tmp/~weft)/")
WORK: Final = _any_of(
    r"\b(?:issue|ticket|session) (?:no\. ?|number |#)\d",
    r"\bsub-?~agents?\b",
    r"\bcoding ~agents?\b",
    r"\b(?:as an|an|the) ~AI\b",
    r"\blanguage ~models?\b",
    r"\bfounding ~engineers?\b",
    r"\b(?:the|my|your) ~brief\b",
    r"\bwork ~items?\b",
)
ELSEWHERE: Final = _any_of(r"\bspecs~/\d\d", r"\bDESIGN~\.md\b")
"""Texts that are not in the tree."""
METAPHORS: Final = {
    "patron": "session",
    "takers": "who acknowledged first",
    "redone": "recomputed",
    "grove": "fleet",
    "copse": "small-fleet",
    "troupe": "clients",
    "mouth": "sender",
    "scribe": "recorder, writer",
    "depot": "cluster",
    "mailroom": "intake",
    "postoffice": "dispatch",
}
"""Words that a reader had to guess, and what stands for them now (HSE-010)."""
METAPHOR: Final = _any_of(rf"(?:^|[^a-z])({'|'.join(METAPHORS)})s?(?:[^a-z]|$)")
GUESSED: Final = frozenset({"kept.py", "held.py", "loose.py", "returned.py", "returning.py", "told.py", "wanted.py"})
"""Modules are named by what they are, not by what was done to it."""
SPOKEN: Final = frozenset({"said", "told", "_said", "_told", "Said", "Told"})
"""Names that say that something was spoken, and not what: an answer, the fields of a message, a line for people."""
UNFINISHED: Final = re.compile("TO~DO|FIX~ME|XX~X|HA~CK|NotImplemented~Error".replace("~", ""))
SILENCED: Final = re.compile(
    r"#\s*(noqa|type:\s*ignore|pragma)\b(?P<codes>[:\s]*(?:\[[^\]]*\]|[A-Z]+\d+(?:[,\s]+[A-Z]+\d+)*)?)(?=(?P<why>.*))"
)
SKIPPED: Final = _any_of(r"mark\.~(?:skip|xfail)", r"pytest\.~(?:skip|xfail|importorskip)\(")
POSSESSIVE_GROUP: Final = re.compile(r"(?<!\\)\)(?:[*+?]|\{\d*,?\d*\})\+")
CODE: Final = ("src/", "tests/", "bench/", "scripts/", "fuzz/")


def registry_hosts(source: Source) -> Iterator[Finding]:
    """Where packages come from is the business of who installs."""
    yield from _lines(source, HOSTS, "a registry's host", "leave it to the configuration of pip")


def machine_paths(source: Source) -> Iterator[Finding]:
    """A path of one machine means nothing on another."""
    yield from _lines(
        source, MACHINES, "a path of one machine", "a path relative to the tree, or a temporary directory"
    )


def words_of_work(source: Source) -> Iterator[Finding]:
    """Files speak of Weft, not of how the work on it was divided."""
    yield from _lines(source, WORK, "speaks of how the work was organised", "say what is so, and why")


def texts_elsewhere(source: Source) -> Iterator[Finding]:
    """A reader of the tree has the tree: it speaks of its own pages, and of requirements by their ids (HSE-012)."""
    yield from _lines(
        source, ELSEWHERE, "names a text that is not here", "a page of docs/, or an id of docs/requirements.md"
    )


def metaphors(source: Source) -> Iterator[Finding]:
    """Names are the field's words, so that an engineer who meets one knows what it is (HSE-010)."""
    if source.path == "tests/tidy/words.py" or source.path.startswith(("docs/requirements", "docs/decisions/")):
        return
    for number, match in _matches(source, METAPHOR):
        if not source.is_answered(number):
            yield source.finding(number, f"a word to be guessed ({match[1]})", METAPHORS[match[1].lower()])


def modules_to_be_guessed(source: Source) -> Iterator[Finding]:
    """A participle alone says nothing of what a module holds."""
    if source.path.startswith("src/") and source.path.rpartition("/")[2] in GUESSED:
        yield source.finding(1, "a module that is named by a participle", "name what it holds")


def names_to_be_guessed(source: Source) -> Iterator[Finding]:
    """A name says what a value is (HSE-010)."""
    if not source.path.startswith("src/weft/"):
        return
    names = [(node.lineno, node.id) for node in source.of(ast.Name) if isinstance(node.ctx, ast.Store)]
    names += [(node.lineno, node.attr) for node in source.of(ast.Attribute) if isinstance(node.ctx, ast.Store)]
    names += [(node.lineno, node.arg) for node in source.of(ast.arg)]
    names += [(node.lineno, node.name) for node in [*source.functions, *source.of(ast.ClassDef)]]
    for number, name in names:
        if name in SPOKEN:
            yield source.finding(number, f"a name to be guessed ({name})", "what it is: answer, fields, message, line")


def unfinished(source: Source) -> Iterator[Finding]:
    """What is not done stands in docs/requirements.toml with its reason."""
    if source.path.startswith(CODE):
        yield from _lines(
            source, UNFINISHED, "says that it is unfinished", "finish it, or list the requirement as not done"
        )


def silenced_without_reason(source: Source) -> Iterator[Finding]:
    """Whoever silences a check says why, behind it on the line."""
    if not SILENCED.search(source.text) or all(map(_says_why, _silencing(source.lines))):
        return  # most files: what is a comment need not be found out
    for number, comment in source.comments:
        match = SILENCED.search(comment)
        if match and not _says_why(match):
            yield source.finding(number, f"`{match[0].strip()}` without a reason", "add it behind the code: `  # why`")


def _silencing(lines: list[str]) -> Iterator[re.Match[str]]:
    return (match for line in lines for match in SILENCED.finditer(line))


def _says_why(match: re.Match[str]) -> bool:
    """Whether what silences a check is followed by a word or two."""
    return len(re.sub(r"\W", "", match["why"])) >= 4


def skipped_tests(source: Source) -> Iterator[Finding]:
    """Nothing that did not run counts as passed."""
    if source.path.startswith("tests/"):
        yield from _lines(source, SKIPPED, "a test that may not run", "make it run, or remove it")


def sleeping_tests(source: Source) -> Iterator[Finding]:
    """A test that sleeps is slow on good days and wrong on bad ones."""
    if not source.path.startswith("tests/"):
        return
    for node in source.of(ast.Call):
        if _sleeps(node) and not source.is_answered(node.lineno):
            yield source.finding(node.lineno, "sleeps", "wait for the event itself, with a bound")


def _sleeps(call: ast.Call) -> bool:
    """Whether a call waits for time; `asyncio.sleep(0)` only lets others run."""
    if not (isinstance(call.func, ast.Attribute) and call.func.attr == "sleep"):
        return False
    yields = len(call.args) == 1 and isinstance(call.args[0], ast.Constant) and call.args[0].value == 0
    return ast.unparse(call.func) in ("time.sleep", "asyncio.sleep") and not yields


def _lines(source: Source, pattern: Any, what: str, instead: str) -> Iterator[Finding]:
    for number, match in _matches(source, pattern):
        if not source.is_answered(number):
            yield source.finding(number, f"{what} ({match[0].strip()})", instead)


def _matches(source: Source, pattern: Any) -> Iterator[tuple[int, Any]]:
    """The first match of each line, with its number."""
    if not pattern.search(source.text):
        return  # most files: their lines need not be looked at one by one
    for number, line in enumerate(source.lines, 1):
        if match := pattern.search(line):
            yield number, match


def possessive_groups(source: Source) -> Iterator[Finding]:
    """Python before 3.11.5 tries a possessive group (`(…)*+`) wrongly; an atomic group with the repetition inside is right everywhere."""
    for node in source.of(ast.Constant) if source.path.startswith("src/") else ():
        if isinstance(node.value, str | bytes):
            text = node.value if isinstance(node.value, str) else node.value.decode("latin-1")
            if POSSESSIVE_GROUP.search(text):
                yield source.finding(node.lineno, "a possessive group", "write (?>(…)*): Python 3.11.2 reads it right")

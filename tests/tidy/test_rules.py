"""Every rule of tidy catches what is planted for it, and leaves its neighbour alone."""

from pathlib import Path

import pytest

from tests.tidy.rules import findings
from tests.tidy.tree import Source

CORE = "src/weft/cores/one/core.py"
SHELL = "src/weft/shell/one.py"
WIRE = "src/weft/wire/one.py"
TEST = "tests/one/test_one.py"
DOC = '    """Promise."""\n'
USED = "use = [f]\n"
NAMED = f"def f(a):\n{DOC}"
DEEP = "    for a in b:\n        if a:\n            while a:\n                if a:\n                    pass\n"
UNFINISHED_WORDS = ["TO~DO", "FIX~ME", "raise NotImplemented~Error"]

PLANTED = [
    # below the shell
    (CORE, "import time\n", 1, "imports time"),
    (CORE, "import os.path\n", 1, "imports os"),
    (CORE, "def f():\n    from zmq.asyncio import Context\n    return Context\n" + USED, 2, "imports zmq"),
    ("src/weft/checks/one.py", "from random import Random\n", 1, "imports random"),
    (CORE, f"async def f():\n{DOC}    return 1\n{USED}", 1, "waits"),
    (CORE, "x = hash(1)\n", 1, "hash()"),
    (CORE, "x = {o: 1 for o in y if id(o)}\n", 1, "id()"),
    (CORE, "def f(:\n", 1, "does not parse"),
    # sets
    (CORE, "for a in {1, 2}:\n    pass\n", 1, "iterates over a set"),
    (CORE, "x = [a for a in set(b)]\n", 1, "iterates over a set"),
    (CORE, "seen: set[int] = f()\nfor a in seen:\n    pass\n", 2, "iterates over a set"),
    (CORE, "class C:\n    def f(self):\n        self.a = set()\n        return list(self.a)\n" + USED, 4, "iterates"),
    (CORE, f"def f(a: frozenset[str]):\n{DOC}    return ','.join(a)\n{USED}", 3, "iterates over a set"),
    (CORE, "for a in b.keys() - c.keys():\n    pass\n", 1, "iterates over a set"),
    (CORE, "x = [*({1} | y)]\n", 1, "iterates over a set"),
    (CORE, "x = set()\ny = x.pop()\n", 2, "iterates over a set"),
    # instants
    (CORE, "x = due_at / 2\n", 1, "float arithmetic on an instant"),
    (CORE, "x = now.mono * 1.5\n", 1, "float arithmetic on an instant"),
    (CORE, "x = float(now.wall)\n", 1, "float() of an instant"),
    (CORE, "class C:\n    due_at: float\n", 2, "`due_at` is a float"),
    # bounds and types
    (
        WIRE,
        "class M(Struct):\n    name: str\n    n: int\nd = msgspec.msgpack.Decoder(M)\n",
        2,
        "`name` of M has no bound",
    ),
    (WIRE, "class M(Struct):\n    a: tuple[int, ...]\nd = Decoder.decode(x, type=M | N)\n", 2, "`a` of M has no bound"),
    (CORE, "x = msgspec.msgpack.decode(y)\n", 1, "decodes without a type"),
    (WIRE, "x = msgspec.json.Decoder()\n", 1, "decodes without a type"),
    (WIRE, "x = json.loads(y)\n", 1, "decodes without a type"),
    # rooms
    (CORE, "x = 1\n", 1, "no states.py"),
    ("src/weft/cores/one/states.py", f"def f():\n{DOC}    return 1\n{USED}", 1, "`f` in a state table"),
    # the command line
    ("src/weft/cli/one.py", "x = Table()\n", 1, "a `Table` of its own"),
    ("src/weft/cli/one.py", "x = EXIT_CODES['ok']\n", 1, "a `EXIT_CODES` of its own"),
    ("src/weft/cli/one.py", "print('weft: it cannot', file=sys.stderr)\n", 1, "complains by itself"),
    # outbox
    (CORE, "x = [Persist(records)]\n", 1, "makes a `Persist`"),
    (CORE, "def f(effects):\n    effects.append(Tell(event))\n" + USED, 2, "makes a `Tell`"),
    # shape
    (SHELL, NAMED + "    a = 1\n" * 60 + USED, 1, "`f` has 62 lines"),
    (SHELL, "a = 1\n" * 601, 1, "601 lines"),
    (SHELL, NAMED + DEEP + USED, 6, "`f` nests deeper than 3"),
    (SHELL, f"def f(a, b, c, d, e, *, g):\n{DOC}{USED}", 1, "`f` takes 6 parameters"),
    (SHELL, "def f(a):\n    a += 1\n    return a\n" + USED, 1, "`f` has no docstring"),
    (SHELL, "class C:\n    def f(self):\n        a = 1\n        return a\n" + USED, 2, "`f` has no docstring"),
    (
        SHELL,
        "class C(NamedTuple):\n    def f(self):\n        a = 1\n        return a\n" + USED,
        2,
        "`f` has no docstring",
    ),
    (TEST, "def test_a():\n" + "    assert f()\n" * 16, 1, "`test_a` asserts 16 times"),
    (TEST, "def test_a():\n    check_b()\n    self._check_c()\n    assert_d(1)\n", 1, "calls 3 checks"),
    (SHELL, "def _lonely():\n    return 1\n", 1, "`_lonely` is never called"),
    (SHELL, "class C:\n" + "    def f(self):\n        return 1\n" * 26 + USED, 1, "`C` has 26 methods in 53 lines"),
    (SHELL, "class C:\n" + "    a = 1\n" * 300, 1, "`C` has 0 methods in 301 lines"),
    ("src/weft/one/__init__.py", '"""It is for this. It never does that."""\n', 1, "a package with 2 sentences"),
    # words
    ("Makefile", "i = https://py~pi.org/simple\n", 1, "a registry's host"),
    ("requirements/a.txt", "--index-url https://files.python~hosted.org\n", 1, "a registry's host"),
    ("docs/a.md", "see /wo~rk/main\n", 1, "a path of one machine"),
    ("docs/a.md", "see /tmp/we~ft/x\n", 1, "a path of one machine"),
    ("docs/a.md", "as asked for in iss~ue #12\n", 1, "how the work was organised"),
    ("docs/a.md", "as spe~cs/03 says\n", 1, "names a text that is not here"),
    (SHELL, "# DES~IGN.md\n", 1, "names a text that is not here"),
    (SHELL, "the_pat~rons = 1\n", 1, "a word to be guessed"),
    (TEST, "class Gro~ve:\n    pass\n", 1, "a word to be guessed"),
    ("docs/a.md", "a tro~upe of clients\n", 1, "a word to be guessed"),
    ("src/weft/cores/one/kept.py", "x = 1\n", 1, "named by a participle"),
    ("src/weft/cli/one.py", "told = f()\n", 1, "a name to be guessed"),
    (WIRE, f"def f(said):\n{DOC}    return said\n{USED}", 1, "a name to be guessed"),
    ("src/weft/sim/one.py", f"def _told():\n{DOC}\nuse = [_told]\n", 1, "a name to be guessed"),
    (SHELL, "a.told = f()\n", 1, "a name to be guessed"),
    (CORE, "class Said:\n    a = 1\n", 1, "a name to be guessed"),
    (CORE, "f = lambda said: said.key\n", 1, "a name to be guessed"),
    *[(SHELL, f"# {word}\n", 1, "says that it is unfinished") for word in UNFINISHED_WORDS],
    (SHELL, "import a  # no~qa: F401\n", 1, "without a reason"),
    (SHELL, "import a  # no~qa\n", 1, "without a reason"),
    (SHELL, "x = y  # type: ig~nore[attr-defined]\n", 1, "without a reason"),
    (TEST, "@pytest.mark.sk~ip\ndef test_a(): ...\n", 1, "a test that may not run"),
    (TEST, "np = pytest.importor~skip('numpy')\n", 1, "a test that may not run"),
    (TEST, "time.sleep(1)\n", 1, "sleeps"),
    (SHELL, "a = r'(?:a|b)*+'\n", 1, "a possessive group"),
    (SHELL, "a = rb'(a)?+b'\n", 1, "a possessive group"),
    (SHELL, "a = rf'{b}(?:,{b}){{1,2}}+'\n", 1, "a possessive group"),
]

HARMLESS = [
    (TEST, "def test_a():\n" + "    assert f()\n" * 15 + "    check_b()\n    check_c()\n"),
    ("src/weft/cores/kit/outbox.py", "x = [Persist(records)]\n"),
    ("src/weft/node/node.py", "x = [Persist(records)]\n"),
    ("src/weft/base/chance.py", "from random import Random\n"),
    (SHELL, "import time\nfor a in {1, 2}:\n    pass\n"),
    (WIRE, "x = sorted(a for a in {1, 2})\ny = any(a for a in {1})\nfor a in sorted(set(b)):\n    pass\n"),
    (WIRE, "x = dict()\nfor a in x:\n    pass\ny = {a for a in {1}}\nz = 1 if a in {1, 2} else 0\n"),
    (WIRE, "x = due_at // 2\ny = (due_at - now.mono) * 2\nz: int = due_at\n"),
    (
        WIRE,
        "class M(Struct):\n    a: Annotated[str, Meta(max_length=9)]\n    b: tuple[int, int]\nd = msgspec.json.Decoder(M)\n",
    ),
    (WIRE, "class M(Struct):  # tidy: bounded by the walk over heads\n    a: str\nd = msgspec.json.Decoder(M)\n"),
    (WIRE, "class M(Struct):\n    a: str\n"),
    (SHELL, "def f(a, b, c, d, e, g):  # tidy: the six of the format\n" + DOC + USED),
    (SHELL, "def _f(a):\n    a += 1\n    return a\nx = _f\n"),
    (SHELL, NAMED + "    if a:\n        pass\n" + "    elif a:\n        pass\n" * 5 + USED),
    ("src/weft/cli/one.py", f"def f(a, *, b=1, c=1, d=1, e=1, g=1):\n{DOC}{USED}"),
    (SHELL, "import a  # no~qa: F401  # registers itself\nx = '# no~qa'\n"),
    (SHELL, "x = y  # type: ig~nore[attr-defined]  # no stubs\n"),
    (SHELL, "class C(Base):\n    def f(self):\n        a = 1\n        return a\n" + USED),
    (SHELL, "class C:\n" + "    a = 1\n" * 299),
    (SHELL, "class C:\n" + "    def f(self):\n        return 1\n" * 25 + USED),
    (SHELL, "class C:  # tidy: as Base of the shell\n    def f(self):\n        a = 1\n        return a\n" + USED),
    (TEST, "asyncio.sleep(0)\n"),
    (SHELL, r"a = r'(?>(?:a|b)*)[ab]*+\)*+'" + "\n"),
    ("docs/a.md", "the framework/ and network/main are no machines; the next session begins\n"),
]


def _plant(root: Path, path: str, text: str) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text(text.replace("~", ""), "utf-8")


@pytest.mark.parametrize("path, text, line, what", PLANTED)
def test_planted_violation_is_found_at_its_line(tmp_path: Path, path: str, text: str, line: int, what: str) -> None:
    _plant(tmp_path, path, text)
    assert [line] == [finding.line for finding in findings(tmp_path) if what in finding.what]


ROUND = {
    "a": "from weft.shell.b import x\n",
    "b": "def f():\n    from weft.shell import c\n",
    "c": "import weft.shell.a\n",
}


@pytest.mark.parametrize(
    "changed, found",
    [
        ({}, ["a", "b", "c"]),
        ({"c": "import weft.shell.a  # tidy: loaded late\n"}, []),
        ({"c": "import weft.shell.d\n"}, []),
    ],
)
@pytest.mark.proves("HSE-009", part="no circle of imports but where a line says why")
def test_a_circle_of_imports_is_found_on_each_of_its_lines(
    tmp_path: Path, changed: dict[str, str], found: list[str]
) -> None:
    for name, text in (ROUND | changed).items():
        _plant(tmp_path, f"src/weft/shell/{name}.py", text)
    told = [finding for finding in findings(tmp_path) if "a circle" in finding.what]
    assert found == [Path(finding.path).stem for finding in told]


SMALL = {"src/weft/shell/small.py": "x = 1\n", "src/weft/shell/reader.py": "from weft.shell.small import x\n"}


@pytest.mark.parametrize(
    "changed, found",
    [
        ({}, ["src/weft/shell/small.py"]),
        ({"src/weft/shell/small.py": "x = 1\n" * 60}, []),
        ({"src/weft/shell/small.py": "# tidy: a room of its own\nx = 1\n"}, []),
        ({"src/weft/shell/other.py": "from weft.shell import small\n"}, []),
        ({"src/weft/shell/reader.py": "def _f():\n    from weft.shell.small import x\n    return x\nuse = [_f]\n"}, []),
        ({"src/weft/shell/reader.py": "from weft.shell.small import x\n" * 400}, []),
    ],
)
@pytest.mark.proves("HSE-009", part="small modules that one other module reads go home, or say why not")
def test_a_small_module_with_one_reader_goes_home(tmp_path: Path, changed: dict[str, str], found: list[str]) -> None:
    for path, text in (SMALL | changed).items():
        _plant(tmp_path, path, text)
    assert found == [finding.path for finding in findings(tmp_path) if "one module reads" in finding.what]


@pytest.mark.parametrize("path, text", HARMLESS)
def test_harmless_neighbour_is_left_alone(tmp_path: Path, path: str, text: str) -> None:
    _plant(tmp_path, path, text)
    assert [] == [str(finding) for finding in findings(tmp_path)]


@pytest.mark.parametrize(
    "line, expected", [("x  # tidy: a table of the format", True), ("x  # tidy:", False), ("x", False)]
)
def test_an_answer_has_a_reason(line: str, expected: bool) -> None:
    assert expected == Source("a.py", line).is_answered(1)


def test_all_findings_come_at_once_sorted_by_place(tmp_path: Path) -> None:
    _plant(tmp_path, "src/weft/base/b.py", "import os\nimport time\n")
    _plant(tmp_path, "src/weft/base/a.py", "import os\n")
    expected = ["src/weft/base/a.py:1", "src/weft/base/b.py:1", "src/weft/base/b.py:2"]
    assert expected == [f"{finding.path}:{finding.line}" for finding in findings(tmp_path)]

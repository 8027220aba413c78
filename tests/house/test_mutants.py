"""The bugs that `make mutants` plants, and that it finds out whether a test sees them (FLD-044)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.house.mutants import known, rules
from tests.house.mutants.reach import Reach
from tests.house.mutants.warm import Warm
from tests.house.requirements import ROOT

KNOWN_MAX = 68
"""How many survivors are listed. It falls, and rises only when a place is walked for the first time."""

RULES = [
    ("drop a sync", "def f(x):\n    os.fsync(x)\n", ["`os.fsync(x)` becomes `pass`"]),
    ("drop a sync", "async def f(x):\n    await x.sync()\n", ["`await x.sync()` becomes `pass`"]),
    ("swap a wall", "def f():\n    a(Persist(x))\n    send(y)\n", ["`a(Persist(x)) send(y)` becomes `send(y) a(Persist(x))`"]),
    ("swap a wall", "def f():\n    return [Persist(x), *y]\n", ["`[Persist(x), *y]` becomes `[*y, Persist(x)]`"]),
    ("swap a wall", "def f():\n    y.insert(0, Persist(x))\n", ["`y.insert(0, Persist(x))` becomes `y.append(Persist(x))`"]),
    ("swap a wall", "def f():\n    keep(x)\n    y = 1\n", []),
    ("drop an assert", "def f(x):\n    '''`x` is asserted.'''\n    assert x\n", ["`assert x` becomes `pass`"]),
    ("drop an assert", "def f(x):\n    assert x\n", []),
    ("drop a refusal", "def f(x):\n    if x > 3:\n        raise E(x < 2)\n", ["`if x > 3: raise E(x < 2)` becomes `pass`"]),
    ("skip a fence", "def f(x):\n    if x:\n        return\n    g()\n", ["`if x: return` becomes `pass`"]),
    ("skip a fence", "def f(x):\n    if x:\n        return\n    else:\n        g()\n", []),
    ("ignore a range", "A = Annotated[int, Meta(ge=0)]\n", ["`Meta(ge=0)` becomes `Meta()`"]),
    ("loosen a comparison", "def f(x):\n    return 1 < x <= 3\n", ["`1 < x <= 3` becomes `1 < x < 3`", "`1 < x <= 3` becomes `1 <= x <= 3`"]),
    ("loosen a comparison", "def f(x):\n    return x == 3\n", []),
    ("loosen a bound", "X_MAX: Final = 1 << 4\n", ["`1 << 4` becomes `(1 << 4) * 1000`", "`1 << 4` becomes `(1 << 4) // 1000`"]),
    ("loosen a bound", "x = 3\nNAME: Final = 'x'\nNONE: Final = 0\n", []),
    ("narrow an except", "try:\n    f()\nexcept (A, B):\n    pass\n", ["`(A, B)` becomes `(A,)`", "`(A, B)` becomes `(B,)`"]),
    ("narrow an except", "_BAD: Final = (ValueError, OSError)\n", ["`(ValueError, OSError)` becomes `(OSError,)`", "`(ValueError, OSError)` becomes `(ValueError,)`"]),
    ("drop a not", "def f(x):\n    return not (x or y)\n", ["`not (x or y)` becomes `(x or y)`"]),
    ("forget a condition", "def f(x):\n    return x and y\n", ["`x and y` becomes `x`", "`x and y` becomes `y`"]),
    ("drop a call", "def f(x):\n    x.count += 1\n    tell(x)\n", ["`tell(x)` becomes `pass`", "`x.count += 1` becomes `pass`"]),
    ("drop a call", "def f(x):\n    '''Text.'''\n    log.info(tell(x))\n    y = tell(x)\n", []),
    ("drop a call", "def __repr__(x):\n    tell(x)\n", []),
    ("lose a one", "def f(x):\n    return f'{x + 1}' if x else x - 1\n", ["`x - 1` becomes `x`"]),
    ("say yes", "def is_f(x):\n    return x\n", ["`x` becomes `True`"]),
    ("say yes", "def f(x):\n    return x\n", []),
]  # fmt: skip


@pytest.mark.proves("FLD-044", part="rules")
@pytest.mark.parametrize("rule, text, expected", RULES)
def test_what_a_rule_plants(rule: str, text: str, expected: list[str]) -> None:
    planted = [one for one in rules.mutants_of("a.py", text) if one.rule == rule]
    assert expected == sorted(f"`{one.was}` becomes `{one.now}`" for one in planted)
    assert [] == rules.unparsable(planted)


def test_a_mutant_is_named_by_its_place_and_its_change_and_not_by_its_line() -> None:
    text = "class A:\n    def f(self, x):\n        return [not y for y in x]\n"
    expected = "`a.py` `A.f`, drop a not: `not y` becomes `y`"
    assert [(expected, 3), (expected, 5)] == [
        (one.key, one.line) for before in ("", "\n\n") for one in rules.mutants_of("a.py", before + text)
    ]


CORE = """\
'''Counts (TOY-001).'''
LIMIT = 3
class Counter:
    def __init__(self): self.count, self.told = 0, []
    def add(self, number):
        '''Refuses more than LIMIT.'''
        if number > LIMIT:
            raise ValueError(number)
        self.count += number
        self.told.append(number)
    def unused(self):
        return not self.count
"""
WEAK = """\
from weft.toy import Counter
def test_counts():
    counter = Counter()
    counter.add(1)
    assert 1 == counter.count
"""
STRONG = """
import pytest
def test_refuses():
    counter = Counter()
    with pytest.raises(ValueError):
        counter.add(4)
    counter.add(3)
    assert ([3], 3) == (counter.told, counter.count)
"""
FREEZING = """\
import gc
import pytest
@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    yield
    gc.freeze()
"""
"""What is loaded is hidden from Python's collector, as `tests/conftest.py` does."""
LATE = (WEAK + STRONG).replace("    counter =", "    from weft.toy import Counter\n    counter =").partition("\n")[2]


@pytest.mark.prove("programs that run tests of their own")
@pytest.mark.proves("FLD-044", part="survivors are found")
@pytest.mark.parametrize(
    "tests, further, listed, survivors, code",
    [
        (WEAK, "", "", ["(3) * 1000", "number >= LIMIT", "pass", "pass"], 1),
        (WEAK + STRONG, "", "", [], 1),
        (LATE, "", "", [], 1),
        (WEAK, WEAK + STRONG, "", [], 1),
        (
            WEAK + STRONG,
            "",
            "- `src/weft/toy.py` `Counter.unused`, drop a not: `not self.count` becomes `self.count`\n  Nobody calls it.\n",
            [],
            0,
        ),
    ],
    ids=["weak", "strong", "loaded late", "strong elsewhere", "strong, and the rest is listed"],
)
def test_a_weak_test_leaves_survivors_and_a_strong_one_none(  # tidy: a row of the table
    tests: str, further: str, listed: str, survivors: list[str], code: int, tmp_path: Path
) -> None:
    for path, text in {
        "src/weft/__init__.py": "",
        "src/weft/toy.py": CORE,
        "tests/conftest.py": FREEZING,
        "tests/toy/test_toy.py": tests,
        "tests/zoo/test_zoo.py": further,
        "docs/mutants.md": listed,
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = ["--import-mode=importlib"]\n',
    }.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    words = [sys.executable, "-m", "tests.house.mutants", "--root", str(tmp_path), "--for", "10m", "src/weft/toy.py"]
    ran = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    told = [line for line in ran.stdout.splitlines() if line.startswith(("survived", "untested"))]
    assert code == ran.returncode, ran.stdout + ran.stderr
    assert survivors == sorted(line.split("becomes `")[1].rstrip("`") for line in told if line.startswith("survived"))
    assert ["drop a not"] == [line.split(", ")[1].split(":")[0] for line in told if line.startswith("untested")]
    assert CORE == (tmp_path / "src/weft/toy.py").read_text("utf-8")


@pytest.mark.proves("FLD-044", part="what lives for want of time is not called a survivor")
def test_a_mutant_is_undecided_as_long_as_there_are_tests_near_it_to_be_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for path, text in {"src/weft/toy.py": CORE, "tests/toy/test_toy.py": WEAK, "tests/zoo/test_zoo.py": WEAK}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text, "utf-8")
    mutant = rules.read(tmp_path, "src/weft/toy.py")[0]
    reach = Reach(tmp_path, tmp_path / "notes")
    monkeypatch.setattr(Warm, "_fate", lambda *_: "survived")
    outcomes = []
    for seen in ("tests/toy/test_toy.py", "tests/zoo/test_zoo.py"):
        reach.notes_of(seen).write_text("{}", "utf-8")
        reach.begin([mutant.path])
        outcomes.append(Warm(tmp_path, reach, [mutant], 0.0, lambda *_: None)._play(mutant)[1])
    assert ["undecided", "survived"] == outcomes


@pytest.mark.proves("FLD-044", part="the list")
def test_the_list_of_survivors_names_mutants_that_exist_and_is_as_long_as_was_said() -> None:
    entries = known.read(ROOT)
    page = (ROOT / known.PAGE).read_text("utf-8")
    assert len(entries) == page.count("\n- `src/"), "an entry is not written as the others are"
    paths = {key.split("`")[1] for key in entries}
    exist = {one.key for path in paths if (ROOT / path).exists() for one in rules.read(ROOT, path)}
    assert [] == sorted(entries.keys() - exist)
    assert KNOWN_MAX == len(entries), (
        "take KNOWN_MAX down with the list; it goes up only for places that nobody had walked"
    )

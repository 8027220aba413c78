"""Every line of the changelog to come is one that towncrier finds, and is one sentence."""

import re
import tomllib

from tests.house.requirements import ROOT

KINDS = [
    kind["directory"]
    for kind in tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]["type"]
]
NAME = re.compile(rf"[a-z0-9-]+\.({'|'.join(KINDS)})\.md")
FRAGMENTS = [path for path in sorted((ROOT / "changelog.d").iterdir()) if path.name != "README.md"]


def test_names_are_those_that_towncrier_takes() -> None:
    assert [] == [path.name for path in FRAGMENTS if not NAME.fullmatch(path.name)]


def test_each_is_one_sentence() -> None:
    texts = {path.name: path.read_text("utf-8").strip() for path in FRAGMENTS}
    assert [] == [name for name, text in texts.items() if not re.fullmatch(r"[A-Z`][^\n]*[.!]", text)]

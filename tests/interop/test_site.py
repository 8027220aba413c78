"""The documentation as a site, built as `make site` builds it."""

import subprocess

import pytest

from tests.house.requirements import ROOT
from tests.interop.programs import needed
from tests.patience import PATIENCE_S

SITE = ROOT / "var" / "site"


@pytest.mark.proves("WEL-002", part="the site is built without a warning, and its menu has every page")
def test_the_site_is_built_without_a_warning_and_its_menu_has_every_page() -> None:
    needed(str(SITE / "environment" / "weft.done"))
    ran = subprocess.run(
        ["scripts/site"], cwd=ROOT, capture_output=True, text=True, timeout=3 * PATIENCE_S, check=False
    )
    assert (0, "") == (ran.returncode, ran.stderr)
    menu = (SITE / "html" / "index.html").read_text("utf-8")
    pages = [f"docs/{page.stem}.html" for page in (ROOT / "docs").glob("*.md")]
    assert [] == [page for page in pages if f'href="{page}"' not in menu or not (SITE / "html" / page).exists()]

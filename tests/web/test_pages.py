"""The two pages stand alone: nothing is loaded from elsewhere, nothing but their own script runs (JAM-020, SEC-046)."""

import base64
import hashlib
import re

import pytest

from weft.web.pages import Page, pages_of

PAGES = pages_of("the token")


def inside(page: Page, tag: str) -> str:
    found = re.findall(rf"<{tag}>(.*?)</{tag}>", page.body.decode(), re.DOTALL)
    assert 1 == len(found)
    return str(found[0])


@pytest.mark.proves("JAM-020", "SEC-046")
@pytest.mark.parametrize("path", sorted(PAGES))
def test_a_page_loads_nothing_from_elsewhere(path: str) -> None:
    text = PAGES[path].body.decode()
    assert [] == re.findall(
        r"""(?:https?:)?//[a-z0-9.]+\.[a-z]{2,}|@import|url\(|<link(?! rel="icon" href="data:,")""", text
    )
    assert [] == re.findall(
        r"""\ssrc=|\son[a-z]+=["']|\sstyle=["']""", re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)
    )


@pytest.mark.proves("SEC-046")
@pytest.mark.parametrize("path", sorted(PAGES))
def test_the_policy_of_a_page_names_its_own_style_and_script_and_nothing_else(path: str) -> None:
    page = PAGES[path]
    rules = dict(rule.strip().split(" ", 1) for rule in page.policy.split(";"))
    assert "'self'" == rules["default-src"]
    for kind in ("style", "script"):
        digest = base64.b64encode(hashlib.sha256(inside(page, kind).encode()).digest()).decode()
        assert f"'sha256-{digest}'" == rules[f"{kind}-src"]


@pytest.mark.proves("SEC-003", part="the bar of the board of a document")
def test_a_board_says_where_an_open_fabric_is_reached_by_other_machines() -> None:
    for page in pages_of("", "192.0.2.1, <b>").values():
        assert re.search(r"<p id=.open. role=.alert.>Open fabric: .*192\.0\.2\.1, &lt;b&gt;.*</p>", page.body.decode())
    for page in PAGES.values():
        assert '<p id="open" role="alert"></p>' in page.body.decode()
        assert "#open:empty { display: none; }" in inside(page, "style")


@pytest.mark.proves("SEC-045", part="what is put into a page, and what its script is told: it sets text, never markup")
def test_only_the_operators_page_knows_the_token_and_it_is_escaped() -> None:
    assert b"the token" not in PAGES["/"].body
    assert b'content="&lt;&quot;&gt;"' in pages_of('<">')["/entry"].body
    bodies = {path: page.body for path, page in pages_of("").items()}
    assert [] == [path for path, body in bodies.items() if b"{{" in body]
    assert any(b"textContent" in body for body in bodies.values())
    assert [] == [
        path for path, body in bodies.items() if re.search(rb"innerHTML|outerHTML|insertAdjacent|document.write", body)
    ]

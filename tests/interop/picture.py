"""`make picture`: docs/console.png anew, the console of seven nodes after ten minutes, one of which was just killed.

The picture bears the words of the page: a test compares them with those of the page as it is.
"""

import tempfile
import time
from pathlib import Path
from typing import Final

from tests.interop.chromium import Chromium
from tests.interop.picturewords import PICTURE, note, words_on
from tests.interop.test_console import VICTIM, Running, page_of, verdict

BEFORE_S: Final = 600.0  # what the sparklines and strips show
SILENT_S: Final = 40


def draw(file: Path) -> None:
    """Start seven nodes, wait, kill one, and take the picture."""
    with tempfile.TemporaryDirectory() as place:
        running = Running(Path(place))
        try:
            time.sleep(BEFORE_S)  # tidy: so long is what the page shows
            with Chromium(Path(place)) as browser:
                running.kill(VICTIM)
                page = page_of(browser, running)
                page.until(verdict(f"✖ 1 of 7 machines in trouble: {VICTIM}"))
                page.until(f"parseInt(document.querySelector('#oldest').textContent) >= {SILENT_S}")
                page.picture(file)
                note(file, words_on(page))
        finally:
            running.fleet.stop_all()


if __name__ == "__main__":
    draw(PICTURE)

"""systemd itself judges the units."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.test_service import node_file
from tests.interop.programs import needed
from weft.cli.service import install


@pytest.mark.proves("OPS-002", part="systemd-analyze verify has nothing to say")
@pytest.mark.parametrize("mine", [False, True])
def test_systemd_takes_the_units(tmp_path: Path, capsys: pytest.CaptureFixture[str], mine: bool) -> None:
    verify = needed("systemd-analyze")
    units = []
    for name, file, lake in (("weft-r1", node_file(tmp_path), None), ("weft-lake", None, "lake")):
        install(file, lake=lake, mine=mine, show=True)
        (tmp_path / f"{name}.service").write_text(capsys.readouterr().out)
        units.append(str(tmp_path / f"{name}.service"))
    environment = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)}
    judged = subprocess.run(
        [verify, "verify", *(["--user"] if mine else []), *units],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (0, "") == (judged.returncode, judged.stderr)

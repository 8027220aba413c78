"""Blocks of ports for fleets that run beside one another."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from weft.base.errors import UserError
from weft.shell.blocks import free_blocks

FILES = Path("/proc/self/fd")
ASKS = "from weft.shell.blocks import free_blocks; print(free_blocks(1, {start}, ports={ports}))"


def asked_elsewhere(start: int, ports: int = 10) -> int:
    words = [sys.executable, "-c", ASKS.format(start=start, ports=ports)]
    told = subprocess.run(words, capture_output=True, text=True, check=True)
    return int(told.stdout.strip("[]\n"))


def test_what_is_given_here_is_given_to_no_other_process() -> None:
    (first,) = free_blocks(1, 19_000)
    assert first < asked_elsewhere(first)
    assert [first] != free_blocks(1, first)


def test_a_block_of_more_than_ten_ports_meets_no_block_of_ten() -> None:
    (wide,) = free_blocks(1, 19_400, ports=12)
    assert wide + 20 <= asked_elsewhere(wide)
    assert wide + 20 <= asked_elsewhere(wide, ports=12)
    assert wide + 20 <= asked_elsewhere(wide + 5)


def test_a_block_with_a_port_that_somebody_has_is_left_alone_and_can_be_had_later() -> None:
    (block,) = free_blocks(1, 19_800)
    with socket.socket() as other:
        other.bind(("127.0.0.1", block + 19))
        assert block + 10 < asked_elsewhere(block + 10)
    assert block + 10 == asked_elsewhere(block + 10)


def test_a_reservation_outlives_the_exec_by_which_a_command_becomes_a_node() -> None:
    becomes = "import os; {asks}; os.execlp('sh', 'sh', '-c', 'echo; read line')"
    words = [
        sys.executable,
        "-c",
        becomes.format(asks=ASKS.format(start=20_200, ports=10).replace("))", "), flush=True)")),
    ]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        base = int(process.stdout.readline().strip("[]\n"))
        assert "\n" == process.stdout.readline()
        assert base < asked_elsewhere(base)
        process.communicate("\n")
    assert base == asked_elsewhere(base)


def test_descriptors_are_bounded_and_too_few_blocks_are_a_refusal() -> None:
    free_blocks(64, 40_000)
    before = len(list(FILES.iterdir()))
    free_blocks(8, 40_000)
    assert before == len(list(FILES.iterdir()))
    with pytest.raises(UserError) as refused:
        free_blocks(2, 59_990)
    assert "no-ports" == refused.value.code

"""A process whose terminal, reader or disk goes away: its status stands, nothing half written."""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.logs import segment, segment_name, write_log_directory, write_partition

PROGRAM = "from ottla.cli import main; main()"
FULL = Path("/dev/full")

needs_full = pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")


@pytest.fixture
def hurt(tmp_path: Path) -> Path:
    """A partition that lost its middle, of which every verb has something to say."""
    return write_partition(
        tmp_path / "hurt-0", {0: segment(2) + b"\x01" * 500 + segment(2, base_offset=30)}
    )


def run_shell(line: str, log: Path, *, before: str = "") -> subprocess.CompletedProcess[bytes]:
    """Run a line in which `ottla` is the program and `$LOG` the log."""
    script = f'ottla() {{ "$PYTHON" -c "{PROGRAM}" "$@"; }}\n{before}\n{line}'
    env = {**os.environ, "PYTHON": sys.executable, "LOG": str(log)}
    return subprocess.run(
        ["bash", "-c", script], env=env, capture_output=True, timeout=60, check=False
    )


VERBS = {
    "audit": ('audit "$LOG"', 2),
    "read": ('read "$LOG"', 2),
    "explain": ("explain crc-mismatch", 0),
    "rebuild": ('rebuild "$LOG" --output "$LOG-new"', 2),
    "a missing path": ('read "$LOG/none"', 3),
    "no such verb": ("frobnicate", 64),
}


@needs_full
@pytest.mark.parametrize("verb", VERBS)
def test_a_status_stands_where_nothing_can_be_said_on_standard_error(verb: str, hurt: Path) -> None:
    line, status = VERBS[verb]
    done = run_shell(f"ottla {line} 2>/dev/full", hurt)
    assert done.returncode == status


@pytest.mark.parametrize("verb", VERBS)
def test_a_status_stands_where_nobody_reads_standard_error(verb: str, hurt: Path) -> None:
    line, status = VERBS[verb]
    done = run_shell(f"{{ (ottla {line}; echo $? >&3) 2>&1 >/dev/null | :; }} 3>&1", hurt)
    assert done.stdout == b"%d\n" % status


@pytest.mark.parametrize("closed", ["2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("verb", VERBS)
def test_a_status_stands_where_a_standard_stream_is_closed(
    verb: str, closed: str, hurt: Path
) -> None:
    line, status = VERBS[verb]
    done = run_shell(f"ottla {line} {closed}", hurt)
    assert done.returncode == status
    assert b"Traceback" not in done.stderr
    assert b"internal error" not in done.stderr


@needs_full
@pytest.mark.parametrize("verb", ["audit", "read", "explain", "inspect", "rebuild"])
def test_what_cannot_be_written_to_standard_output_is_status_3(verb: str, hurt: Path) -> None:
    arguments = {
        "explain": "explain",
        "inspect": f'inspect "$LOG"/{segment_name(0)}',
        "rebuild": 'rebuild "$LOG" --output "$LOG-new"',
    }
    done = run_shell(f"ottla {arguments.get(verb, VERBS.get(verb, ('',))[0])} >/dev/full", hurt)
    assert done.returncode == 3
    assert b"No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


@pytest.mark.parametrize(
    "line", ['read "$LOG"', 'audit "$LOG" --all', "explain", "explain --profiles"]
)
def test_a_reader_that_takes_one_line_gets_no_error(line: str, tmp_path: Path) -> None:
    log = write_partition(tmp_path / "orders-0", {0: segment(5_000)})
    done = run_shell(f"ottla {line} | head -n 1", log)
    assert done.stdout.count(b"\n") == 1
    assert done.stderr == b""


@pytest.mark.parametrize(
    "arguments", [("rebuild", "--output"), ("audit", "--output")], ids=["rebuild", "audit"]
)
def test_a_disk_that_fills_up_leaves_nothing_and_is_status_3(
    arguments: Sequence[str], tmp_path: Path
) -> None:
    log = write_log_directory(tmp_path / "kafka", ["orders-0", "orders-1"])
    verb, option = arguments
    before = {path: path.stat().st_mtime_ns for path in log.rglob("*")}
    done = run_shell(f'ottla {verb} "$LOG" {option} "$LOG/../new"', log, before="ulimit -f 0")
    assert done.returncode == 3
    assert b"File too large" in done.stderr
    assert b"new" in done.stderr
    assert {path: path.stat().st_mtime_ns for path in log.rglob("*")} == before
    assert [path.name for path in tmp_path.iterdir()] == ["kafka"]


def test_ctrl_c_during_a_rebuild_is_130_and_leaves_nothing(tmp_path: Path) -> None:
    log = tmp_path / "kafka"
    first = write_partition(log / "orders-0", {0: segment(2)}) / segment_name(0)
    for partition in range(1, 300):
        (log / f"orders-{partition}").mkdir()
        (log / f"orders-{partition}" / segment_name(0)).hardlink_to(first)
    target = tmp_path / "new"
    # It is interrupted at the hundredth partition.
    program = (
        "import os, signal, sys\n"
        "from ottla.logs import rebuild\n"
        "one, done = rebuild._rebuild, []\n"
        "def counted(*arguments):\n"
        "    done.append(0)\n"
        "    if len(done) == 100:\n"
        "        os.kill(os.getpid(), signal.SIGINT)\n"
        "    return one(*arguments)\n"
        "rebuild._rebuild = counted\n"
        "from ottla.cli import main\n"
        "main()\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, "rebuild", log, "--output", target],
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (128 + signal.SIGINT, b"ottla: interrupted\n")
    assert [path.name for path in tmp_path.iterdir()] == ["kafka"]

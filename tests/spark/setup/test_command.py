"""`ottla audit --engine spark`: for those who have no session."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from ottla.errors import SparkError
from ottla.spark.setup import session
from support.clusters import free_port
from support.commands import Ran
from support.logs import segment, segment_name

PROGRAM = "from ottla.cli import main; main()"
NO_PYSPARK = "import sys; sys.modules['pyspark'] = None\n"


def ottla(*arguments: object, before: str = "") -> Ran:
    """Run the program as a process of its own."""
    command = [sys.executable, "-c", before + PROGRAM, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    return Ran(done.returncode, done.stdout, done.stderr)


@pytest.mark.spark
@pytest.mark.slow
def test_the_report_and_the_status_are_those_of_the_embedded_engine(demo: Path) -> None:
    embedded = ottla("audit", demo, "--format", "json")
    on_spark = ottla("audit", demo, "--format", "json", "--engine", "spark", "--master", "local[2]")
    assert on_spark.status == embedded.status == 1
    found, expected = json.loads(on_spark.out), json.loads(embedded.out)
    for clock in ("started_ms", "elapsed_s"):
        del found[clock], expected[clock]
    assert found == expected


def test_options_of_the_other_engine_are_refused(demo: Path) -> None:
    threads = ottla("audit", demo, "--engine", "spark", "--threads", "2")
    assert threads.status == 64
    assert "--threads applies to --engine embedded only" in threads.err
    master = ottla("audit", demo, "--master", "local[2]")
    assert master.status == 64
    assert "--master needs --engine spark" in master.err


def test_without_pyspark_the_command_says_what_to_install(demo: Path) -> None:
    missing = ottla("audit", demo, "--engine", "spark", before=NO_PYSPARK)
    assert missing.status == 3
    assert "pip install 'ottla[spark]'" in missing.err
    assert "Traceback" not in missing.err


def started(*arguments: object, mark: Path) -> subprocess.Popen[str]:
    """Start the program as a terminal does, in a group of processes of its own, with a mark."""
    command = [sys.executable, "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"OTTLA_TEST_MARK": str(mark)},
        start_new_session=True,
    )


def processes_of(mark: Path) -> dict[int, str]:
    """Return the running processes whose environment holds a mark: they inherit it."""
    found = {}
    entry = f"OTTLA_TEST_MARK={mark}\0".encode()
    for directory in Path("/proc").iterdir():
        with suppress(OSError):
            if directory.name.isdigit() and entry in (directory / "environ").read_bytes():
                found[int(directory.name)] = (directory / "cmdline").read_text().replace("\0", " ")
    return found


def large_logs(directory: Path) -> Path:
    """Write what takes seconds to scan: the same segment as 256 partitions, a gigabyte."""
    data = segment(1_000, records=100, value_size=30)
    first = directory / "orders-0" / segment_name(0)
    for number in range(256):
        path = directory / f"orders-{number}" / segment_name(0)
        path.parent.mkdir(parents=True)
        if path == first:
            path.write_bytes(data)
        else:
            path.hardlink_to(first)
    return directory


def wait_for(ready: Callable[[], bool], within_s: float) -> bool:
    deadline = time.monotonic() + within_s
    while not ready():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.1)
    return True


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc: Linux alone")
@pytest.mark.parametrize("whom", ["group", "alone"])
@pytest.mark.parametrize("sign", ["bin/java", "pyspark.daemon"])
def test_ctrl_c_ends_the_command_and_everything_it_started(
    tmp_path: Path, sign: str, whom: str
) -> None:
    """The first sign is of a JVM that starts, the second of tasks that run."""
    mark = tmp_path
    output = tmp_path / "tables"
    logs = large_logs(tmp_path / "logs")
    engine = ("--engine", "spark", "--master", "local[2]")
    with started("audit", logs, *engine, "--output", output, mark=mark) as process:
        try:
            has_begun = wait_for(
                lambda: any(sign in command for command in processes_of(mark).values()), 120
            )
            assert has_begun
            if whom == "group":
                os.killpg(process.pid, signal.SIGINT)
            else:
                process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=120)
            assert process.returncode == 130
            assert [line for line in err.splitlines() if line.startswith("ottla")] == [
                "ottla: interrupted"
            ]
            # PySpark's daemon may find its pipe to the JVM broken: nobody else's frames are there.
            frames = re.findall(r'^ +File "(.*?)"', err, re.MULTILINE)
            assert all(frame.endswith("/pyspark/daemon.py") for frame in frames), err
            assert "\tat " not in err
            assert not output.exists()
            assert wait_for(lambda: not processes_of(mark), 30), processes_of(mark)
        finally:
            for number in processes_of(mark):
                with suppress(ProcessLookupError):
                    os.kill(number, signal.SIGKILL)


@pytest.mark.spark
def test_a_server_of_spark_connect_that_is_not_there_is_told_in_a_sentence() -> None:
    port = free_port()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(session, "ANSWER_WITHIN_S", 1.0)
        with pytest.raises(SparkError, match=f"answers at 127.0.0.1:{port} within 1 s"):
            session.session(f"sc://127.0.0.1:{port}/;token=secret")


def test_a_master_that_spark_does_not_know_is_wrong_usage(demo: Path) -> None:
    wrong = ottla("audit", demo, "--engine", "spark", "--master", "10.0.0.1:7077")
    assert wrong.status == 64
    assert "'10.0.0.1:7077' is not a Spark master" in wrong.err

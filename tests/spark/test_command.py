"""`ottla audit --engine spark`: for those who have no session."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Ran

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
    assert json.loads(on_spark.out) == json.loads(embedded.out)


def test_options_of_the_other_engine_are_refused(demo: Path) -> None:
    threads = ottla("audit", demo, "--engine", "spark", "--threads", "2")
    assert threads.status == 64
    assert "--threads and --max-mb-per-s are of --engine embedded" in threads.err
    master = ottla("audit", demo, "--master", "local[2]")
    assert master.status == 64
    assert "--master needs --engine spark" in master.err


def test_without_pyspark_the_command_says_what_to_install(demo: Path) -> None:
    missing = ottla("audit", demo, "--engine", "spark", before=NO_PYSPARK)
    assert missing.status == 3
    assert "pip install 'ottla[spark]'" in missing.err
    assert "Traceback" not in missing.err

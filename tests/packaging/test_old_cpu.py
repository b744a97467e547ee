"""CPUs without the instructions that the kernels like: an x86-64 of 2006, by QEMU."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.programs import leave_out, required

pytestmark = pytest.mark.slow

# The first has no SSE4.2, the second no BMI1.
OLD, LATER = "core2duo", "Westmere"


def run_on(cpu: str, *arguments: str, root: Path) -> subprocess.CompletedProcess[str]:
    if os.uname().machine != "x86_64":
        leave_out("such CPUs are of x86-64")
    command = [required("qemu-x86_64"), "-cpu", cpu, sys.executable, *arguments]
    environment = {
        "PYTHONPATH": os.pathsep.join(path for path in sys.path if path),
        "LANG": "C.UTF-8",
    }
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


@pytest.mark.parametrize(("cpu", "level"), [(OLD, "portable"), (LATER, "sse42")])
def test_a_cpu_gets_the_kernels_it_can_run(cpu: str, level: str, root: Path) -> None:
    program = "from ottla._engine import kernel_level; print(kernel_level())"
    assert run_on(cpu, "-c", program, root=root).stdout == f"{level}\n"


def test_a_cpu_without_sse42_reads_checks_builds_and_audits(root: Path) -> None:
    done = run_on(OLD, "release/trial.py", "examples/data", root=root)
    assert done.returncode == 0, done.stderr
    assert "works on" in done.stdout


def test_kernels_that_a_cpu_lacks_are_not_run_when_they_are_asked_for(root: Path) -> None:
    program = (
        "import os; os.environ['OTTLA_KERNELS'] = 'avx512';"
        "from ottla._engine import kernel_level; print(kernel_level())"
    )
    assert run_on(OLD, "-c", program, root=root).stdout == "portable\n"


def test_columns_on_a_cpu_on_which_numpy_ends_the_process_are_an_error(root: Path) -> None:
    program = (
        "import ottla; data = ottla.build_batch([ottla.NewRecord(None, b'value')]);"
        "ottla.read_columns(data).offset"
    )
    done = run_on(OLD, "-c", program, root=root)
    assert done.returncode == 1
    assert "ImportError: columns need NumPy" in done.stderr
    assert "it has no SSE4.2. Read records instead" in done.stderr


def test_rows_of_one_timestamp_need_no_numpy(root: Path) -> None:
    program = (
        "from ottla.records import BatchBuilder; builder = BatchBuilder(1000);"
        "print(builder.append_many(5, None, [b'a', b'b']))"
    )
    assert run_on(OLD, "-c", program, root=root).stdout == "2\n"


@pytest.mark.parametrize(
    ("call", "instead"),
    [
        ("BatchBuilder(1000).append_many([5], None, [b'a'])", "Pass records"),
        ("BatchBuilder(1000).append_many(5, None, [b'a'], [0])", "Pass records"),
        ("BatchBuilder(1000).append_many(5, ([0, 1], b'a'), None)", "Pass records"),
        ("build_batch_from_columns([5], None, None)", "Pass records"),
        ("rows_by_partition([0], 1)", "Pass records"),
        ("partitions_of([b'a'], 3)", "Take murmur2 of each key"),
        ("arrow_column([b'a'])", "Pass records"),
    ],
)
def test_what_takes_or_gives_arrays_is_an_error_there(call: str, instead: str, root: Path) -> None:
    done = run_on(OLD, "-c", f"from ottla.records import *; {call}", root=root)
    assert done.returncode == 1
    assert "ImportError: columns need NumPy" in done.stderr
    assert f"it has no SSE4.2. {instead} instead" in done.stderr


def test_a_producer_is_there_without_numpy_and_says_so_of_columns(root: Path) -> None:
    program = (
        "from ottla.client import Producer; import sys; print('numpy' in sys.modules);"
        "from ottla.client.producer.columns import rows_of; rows_of([b'a'], None, 5, None, 5)"
    )
    done = run_on(OLD, "-c", program, root=root)
    assert done.stdout == "False\n"
    assert "it has no SSE4.2. Send each record instead" in done.stderr


@pytest.mark.parametrize(
    "call", ["validate_column([0], b'', None", "split_column([0], b'', None, 'valid'"]
)
def test_columns_of_sets_are_an_error_there(call: str, root: Path) -> None:
    names = ["now_ms", "api_version", "base_offset", "leader_epoch", "origin"]
    names += ["transactional_id", "profile"]
    options = ", ".join(f"{name}=None" for name in names)
    done = run_on(OLD, "-c", f"from ottla.records import *; {call}, {options})", root=root)
    assert "it has no SSE4.2. Pass records instead" in done.stderr


def test_a_long_view_of_bytes_is_read_and_checked_without_numpy(root: Path) -> None:
    program = (
        "import ottla; data = ottla.build_batch([ottla.NewRecord(None, bytes(1 << 17))]);"
        "view = memoryview(data); found = ottla.validate(view, now_ms=0).stored_parts;"
        "print(ottla.check_batches(view), bytes(found[1]) == data[61:])"
    )
    done = run_on(OLD, "-c", program, root=root)
    assert done.stdout == "1 True\n"

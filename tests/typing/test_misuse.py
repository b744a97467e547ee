"""Mistakes of users that checkers of types complain about, and what is right instead.

mypy in its strict mode and pyright (as basedpyright, which comes with what it runs on) both see
both halves, the mistakes with an error in the line of each, the others without any.
"""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HEAD = """\
from pathlib import Path

import ottla

data = Path("examples/data/orders-0/00000000000000000000.log").read_bytes()
record = next(ottla.read(data))
batch = next(ottla.read_batches(data))
result = ottla.audit("examples/data")
order = ottla.NewRecord(key=b"k", value=b"v")
"""

# The mistake, and what is right.
PAIRS = {
    "a path in place of bytes": (
        'ottla.check_batches("examples/data/orders-0")',
        "ottla.check_batches(data)",
    ),
    "text in place of records": (
        'ottla.validate("three apples", now_ms=0)',
        "ottla.validate(bytes(batch), now_ms=0)",
    ),
    "records that are not bytes yet": (
        "ottla.Leader().append([order], now_ms=0)",
        "ottla.Leader().append(ottla.build_batch([order]), now_ms=0)",
    ),
    "a configuration that is none": (
        'ottla.Leader({"compression.type": "zstd"})',
        'ottla.Leader(ottla.TopicConfig(compression_type="zstd"))',
    ),
    "a level that is none": (
        'ottla.check_batches(data, level="deep")',
        'ottla.check_batches(data, level="full")',
    ),
    "an isolation that is none": (
        'ottla.read_partition("orders-0", isolation="committed")',
        'ottla.read_partition("orders-0", isolation="read_committed")',
    ),
    "text as a value": (
        'ottla.NewRecord(value="three apples")',
        'ottla.NewRecord(value=b"three apples")',
    ),
    "a codec that is none": (
        'ottla.build_batch([order], compression="brotli")',
        'ottla.build_batch([order], compression="zstd")',
    ),
    "a value that may be null": (
        "print(record.value.decode())",
        "print(record.value.decode() if record.value is not None else None)",
    ),
    "a record is not changed": (
        "record.offset = 5",
        "print(ottla.Record(5, key=record.key))",
    ),
    "a verdict without a time": (
        "ottla.validate(data)",
        "ottla.validate(data, now_ms=0)",
    ),
    "a column that is none": (
        'print([row["first_ofset"] for row in result.transactions])',
        'print([row["first_offset"] for row in result.transactions])',
    ),
    "an attribute that is none": (
        "print(batch.baseOffset)",
        "print(batch.base_offset)",
    ),
}
FIRST = HEAD.count("\n") + 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("misuse")
    for number, name in enumerate(("wrong", "right")):
        lines = "".join(f"{pair[number]}\n" for pair in PAIRS.values())
        (folder / f"{name}.py").write_text(HEAD + lines, encoding="utf-8")
    return folder


def run(*command: object) -> str:
    module = [sys.executable, "-m", *map(str, command)]
    done = subprocess.run(module, capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout, done.stderr
    return done.stdout


def errors_of_mypy(path: Path) -> set[int]:
    """Lines with an error."""
    said = run("mypy", "--strict", "--cache-dir", path.parent / "cache", path)
    return {int(line) for line in re.findall(rf"{path.name}:(\d+): error", said)}


def errors_of_pyright(path: Path) -> set[int]:
    """Lines with an error of pyright's own standard mode."""
    settings = path.parent / "pyrightconfig.json"
    settings.write_text(json.dumps({"typeCheckingMode": "standard", "include": [path.name]}))
    said = json.loads(run(*PYRIGHT, "-p", settings))
    assert said["summary"]["filesAnalyzed"] == 1
    return {
        one["range"]["start"]["line"] + 1
        for one in said["generalDiagnostics"]
        if one["severity"] == "error"
    }


PYRIGHT = ("basedpyright", "--outputjson", "--pythonpath", sys.executable)
Errors = Callable[[Path], set[int]]
CHECKERS = pytest.mark.parametrize("errors", [errors_of_mypy, errors_of_pyright])


@pytest.mark.slow
@CHECKERS
def test_every_mistake_is_an_error(folder: Path, errors: Errors) -> None:
    found = errors(folder / "wrong.py")
    missed = [name for line, name in enumerate(PAIRS, FIRST) if line not in found]
    assert missed == []
    assert len(found) == len(PAIRS)


@pytest.mark.slow
@CHECKERS
def test_nothing_is_an_error_in_what_is_right(folder: Path, errors: Errors) -> None:
    assert errors(folder / "right.py") == set()

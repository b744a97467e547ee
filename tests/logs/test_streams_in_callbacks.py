"""A stream of Arrow read inside a function that the engine calls: an error, and no crash.

A library lets the interpreter's lock go while it reads a stream, which the engine cannot see from
inside its own call. Each case is a process of its own, since a crash would end the tests.
"""

import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
SEGMENT = DATA / "orders-0" / "00000000000000000000.log"

PROGRAM = """
import io, sys
import ottla, pyarrow as pa
from ottla import _engine

PARTITION, SEGMENT = sys.argv[1:]
DATA = open(SEGMENT, "rb").read()

class Stored:
    "Bytes that are read by Python, as those of an object store."
    def __init__(self, at_size=lambda: None, at_read=lambda: None):
        self.at_size, self.at_read = at_size, at_read
    @property
    def size(self):
        self.at_size()
        return len(DATA)
    def read_at(self, position, size):
        self.at_read()
        return DATA[position : position + size]

told = []

def partition():
    return ottla.read_partition(PARTITION)

def stored():
    return _engine.segment_table(Stored(), "records")

def read(*_):
    "Reads streams of each kind that needs Python."
    for of in (partition, stored):
        try:
            pa.table(of())
        except OSError as error:
            told.append(str(error))
        else:
            told.append("read")
    return True
"""

CASES = {
    "progress of a scan": "_engine.Segment(SEGMENT.encode(), now_ms=0).scan(progress=read)",
    "progress of counting": """
offsets = _engine.ReadableOffsets([(SEGMENT.encode(), 0)], start_offset=0, stopped_cleanly=False)
offsets.count([(1, 0, [0])], progress=read)
""",
    "bytes of an object": "list(_engine.segment_table(Stored(at_read=read), 'records'))",
    "the size of an object": "list(_engine.segment_table(Stored(at_size=read), 'records'))",
    "bytes of an object in a stream": """
pa.table(_engine.segment_table(Stored(at_read=read), "records"))
""",
    "batches of a stream": """
def batches():
    read()
    yield from _engine.segment_table(SEGMENT.encode(), "batches")
pa.table(_engine.segment_stream("batches", batches()))
""",
}


def told_by(case: str) -> list[str]:
    """What happened to the streams, each once."""
    program = f"{PROGRAM}\n{case}\nprint(*sorted(set(told)), sep='\\n')"
    command = [sys.executable, "-c", program, str(DATA / "orders-0"), str(SEGMENT)]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_it_is_an_error_that_says_what_to_do(case: str) -> None:
    (said,) = told_by(case)
    assert "such as on_damage, progress or read_at: iterate over its batches there" in said


def test_a_stream_is_read_where_an_audit_tells_how_far_it_is() -> None:
    assert told_by("ottla.audit(PARTITION, progress=read)") == ["read"]

"""Instructions of a call with one batch of one record, under callgrind.

A process makes few calls and another makes many: the difference is that of the calls, less that of
a loop around nothing. The level of the kernels is set, so that it is the same on each CPU.
"""

import platform
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from benches.instructions import count

# What every CPU has on which these are counted.
LEVEL, MACHINES = "sse42", ("x86_64", "AMD64")
_CALLS = (1_000, 11_000)

# As many batches of a producer are built whatever the number of calls.
_PROGRAM = f"""
import sys, ottla
def repeat(following, check, append, verdict, batch, view):
    for next_batch in following:
        {{call}}
records = [ottla.NewRecord(value=b"v" * 100, timestamp=0)]
producer = dict(producer_id=7, producer_epoch=0)
following = [ottla.build_batch(records, **producer, base_sequence=n) for n in range({_CALLS[1]})]
batch = ottla.build_batch(records)
verdict = ottla.validate(batch, now_ms=0, base_offset=9)
append = ottla.Leader().append
following = following[:int(sys.argv[1])]
repeat(following, ottla.check_batches, append, verdict, batch, memoryview(batch))
"""
_NOTHING = "pass"


class Call(NamedTuple):
    """What is called, and how many instructions it may take."""

    source: str
    most: int


# Three to five hundredths above what they take from CPython 3.11.
CALLS: Mapping[str, Call] = {
    "check_batches": Call("check(batch)", 815),
    "check_batches of a view": Call("check(view)", 2_410),
    "Leader.append": Call("append(batch, now_ms=0)", 2_005),
    "Leader.append of a producer": Call("append(next_batch, now_ms=0)", 2_315),
    "Verdict.stored_parts": Call("verdict.stored_parts", 972),
}


def count_calls(site: Path | None = None) -> dict[str, int]:
    """Count the instructions of one of each call."""
    few, many = _CALLS
    with tempfile.TemporaryDirectory(prefix="ottla-calls-") as bytecode:

        def of(source: str) -> int:
            program = [sys.executable, "-c", _PROGRAM.format(call=source)]
            counts = [
                count([*program, str(calls)], Path(bytecode), LEVEL, site) for calls in _CALLS
            ]
            return (counts[1] - counts[0]) // (many - few)

        loop = of(_NOTHING)
        return {name: of(call.source) - loop for name, call in CALLS.items()}


def calls_that_grew() -> list[str]:
    """Compare each call with what it may take; give a line for each that takes more."""
    if platform.machine() not in MACHINES:
        print(f"  NOT COUNTED: {platform.machine()} has no kernels {LEVEL}")
        return []
    grew = []
    for name, counted in count_calls().items():
        row = f"{name}: {counted:,} instructions, at most {CALLS[name].most:,}"
        print(f"  {'GREW' if counted > CALLS[name].most else 'ok  '} {row}", flush=True)
        if counted > CALLS[name].most:
            grew.append(row)
    return grew


if __name__ == "__main__":
    sys.exit(bool(calls_that_grew()))

"""What is freed is used again, without the system in between."""

import platform
import subprocess
import sys

import pytest

PROGRAM = """
import resource
from ottla.net.memory import keep_freed_memory
{call}
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    parts = [b"x" * (1 << 20) for _ in range(4)]
    del parts
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def page_faults(call: str) -> int:
    """How often pages came from the system while buffers were made and freed."""
    command = [sys.executable, "-c", PROGRAM.format(call=call)]
    return int(subprocess.run(command, capture_output=True, check=True, timeout=60).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="its allocator is the one meant")
def test_buffers_that_were_freed_are_used_again() -> None:
    assert page_faults("keep_freed_memory()") < page_faults("") / 10

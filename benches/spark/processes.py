"""What the processes of a session cost: CPU time and memory, from Linux's `/proc`."""

import os
import time
from pathlib import Path
from typing import Any

_PROC = Path("/proc")
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
# Fields of `/proc/<pid>/stat` behind the name, which may hold spaces.
_PARENT, _USER, _CHILDREN_SYSTEM = 1, 11, 14


def _stat(pid: int) -> list[str] | None:
    try:
        return (_PROC / str(pid) / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None


def _stats() -> dict[int, list[str]]:
    found = {
        int(path.name): _stat(int(path.name)) for path in _PROC.iterdir() if path.name.isdigit()
    }
    return {pid: stat for pid, stat in found.items() if stat is not None}


def _below(root: int) -> dict[int, list[str]]:
    """Return a process and those it started, at any remove."""
    stats = _stats()
    inside = {root}
    while more := {
        pid for pid, stat in stats.items() if pid not in inside and int(stat[_PARENT]) in inside
    }:
        inside |= more
    return {pid: stats[pid] for pid in inside if pid in stats}


def jvm_of(spark: Any) -> int:
    """Return the process id of the driver's JVM, which also holds a local session's executors."""
    return int(spark._jvm.java.lang.ProcessHandle.current().pid())


def cpu_seconds(jvm: int) -> float:
    """Return what the JVM, its Python workers and this process have used since they began."""
    return cpu_seconds_below(jvm) + time.process_time()


def cpu_seconds_below(root: int) -> float:
    """Return what a process and those it started have used since they began.

    A worker that has ended counts with its parent, which has waited for it.
    """
    ticks = sum(
        int(field) for stat in _below(root).values() for field in stat[_USER : _CHILDREN_SYSTEM + 1]
    )
    return ticks / _TICKS_A_SECOND


def python_workers(jvm: int) -> list[int]:
    """Return the process ids of the Python workers; the daemon that forks them is none."""
    inside = _below(jvm)
    python = []
    for pid in inside:
        try:
            command = (_PROC / str(pid) / "cmdline").read_bytes()
        except OSError:
            continue
        if b"pyspark" in command and pid != jvm:
            python.append(pid)
    daemons = {int(inside[pid][_PARENT]) for pid in python}
    return [pid for pid in python if pid not in daemons]


def peak_resident(pid: int) -> int:
    """Return the most memory a process has had resident, in bytes; 0 where it has ended."""
    try:
        lines = (_PROC / str(pid) / "status").read_text().splitlines()
    except OSError:
        return 0
    peaks = [int(line.split()[1]) for line in lines if line.startswith("VmHWM:")]
    return peaks[0] * 1024 if peaks else 0

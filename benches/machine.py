"""What figures hold for: the CPU, the kernels that run on it, the versions; and what is not here.

`python -m benches.machine` prints both in lines of a log, as `make ci` does before anything else.
"""

import os
import platform
import shutil
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

from benches.peers.maven import missing
from benches.worker import ROOT

SHARED = Path(os.environ.get("OTTLA_SHARED", ROOT.parent / "shared"))


def cpu() -> str:
    """Name the model of the CPU."""
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        for line in cpuinfo.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def kernels() -> str:
    """Name the level of the kernels that run."""
    from ottla import _engine

    return _engine.kernel_level()


def demand_release() -> None:
    """Measure nothing with an engine that is quick to build: end the program with what to do."""
    from ottla import _engine

    if _engine.build_profile() != "release":
        sys.exit("not measured: the engine in place is not optimised; run `make build`")


def machine() -> dict[str, str]:
    """Describe what the figures hold for."""
    from ottla import __version__

    revision = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout.strip()
    return {
        "cpu": cpu(),
        "level": kernels(),
        "python": platform.python_version(),
        "ottla": __version__,
        "aiokafka": version("aiokafka"),
        "revision": revision,
    }


def absent() -> list[str]:
    """Name what is not here, with what is skipped for it."""
    lines = []
    if not SHARED.is_dir():
        lines.append(f"no corpora in {SHARED}: tests marked `shared`")
    if shutil.which("valgrind") is None:
        lines.append("no valgrind: instruction counts of the kernels")
    if missing() is not None:
        lines.append(f"{missing()}: Kafka's own classes beside ours")
    if shutil.which("java") is None:
        lines.append("no Java: tests marked `spark`")
    return lines


def main() -> None:
    """Print what runs here, and what does not."""
    from ottla import _engine

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    forced = os.environ.get("OTTLA_KERNELS")
    asked = f" (OTTLA_KERNELS={forced})" if forced else ""
    built = "" if _engine.build_profile() == "release" else ", quick to build"
    print(f"CPU {cpu()}, {cores} cores; kernels {kernels()}{asked}{built}; {platform.platform()}")
    print(*(f"  skipped: {line}" for line in absent()), sep="\n", end="\n" if absent() else "")


if __name__ == "__main__":
    main()

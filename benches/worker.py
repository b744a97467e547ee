"""A candidate in a process of its own: another CPU level, another revision, another language.

The worker prepares its candidate, prints one line, `ready` with the records a run sees and what it
is, and then answers every line with the CPU seconds of one run. It runs in a race like any other
candidate: in turn, and alone.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from benches.data import Data, Shape, generate
from benches.peers import JOBS, OURS
from benches.race import turn

ROOT = Path(__file__).resolve().parents[1]


class WorkerError(Exception):
    """A worker did not start, or stopped."""


class Worker:
    """The other process, as a candidate's turn."""

    def __init__(
        self, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self._process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **(environment or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            self.records, self.name = self._introduction()
        except BaseException:
            self.close()
            raise

    def _introduction(self) -> tuple[int, str]:
        answer = self._answer()
        word, count, name = answer.split(maxsplit=2)
        if word != "ready":
            raise WorkerError(f"expected `ready`, a count and a name, found: {answer}")
        return int(count), name

    def _answer(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            assert self._process.stderr is not None
            said = self._process.stderr.read().strip().splitlines()
            raise WorkerError(said[-1] if said else "a worker stopped without a word")
        return line.strip()

    def __call__(self) -> float:
        """Run once; return the CPU seconds."""
        assert self._process.stdin is not None
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        """End the process."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdout, self._process.stderr):
            if stream is not None:
                stream.close()


def python_worker(
    job: str, data: Data, *, peer: str = OURS, environment: Mapping[str, str] | None = None
) -> Worker:
    """Start a Python worker: `OTTLA_KERNELS` chooses its CPU level, `PYTHONPATH` its revision."""
    task = {"job": job, "peer": peer, "shape": asdict(data.shape), "size": data.size}
    return Worker([sys.executable, "-m", "benches.worker", json.dumps(task)], environment)


def main() -> None:
    """Be a worker."""
    task = json.loads(sys.argv[1])
    data = generate(Shape(**task["shape"]), task["size"])
    candidate = JOBS[task["job"]][task["peer"]](data)
    count = candidate()
    take = turn(candidate)

    import ottla
    from ottla._engine import kernel_level

    print("ready", count, kernel_level(), Path(ottla.__file__).parent, flush=True)
    for _ in sys.stdin:
        print(take(), flush=True)


if __name__ == "__main__":
    main()

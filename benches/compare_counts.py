"""`make bench-compare REV=… ONLY=counts`: what users wait for, in instructions of two revisions.

Both are counted under callgrind in one run, with one interpreter and the same kernels, each over
the same logs. What one revision does not have is left out.
"""

import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from benches.calls import count_calls
from benches.growth import DIMENSIONS
from benches.instructions import AUDIT, EACH, Slope, grown, python, starts
from benches.output import instructions, log

_BATCHES = 200, 1_200

Count = Callable[[Path | None], dict[str, int]]


def _one_more(name: str, slope: Slope, site: Path | None) -> dict[str, int]:
    return {name: slope.count(site)}


def _outputs(name: str, options: tuple[str, ...], site: Path | None) -> dict[str, int]:
    """Count what one more batch takes in an audit that writes its result."""
    few, many = _BATCHES
    with log(few, is_damaged=False) as small, log(many, is_damaged=False) as large:
        taken = instructions(large, options, site) - instructions(small, options, site)
    return {name: taken // (many - few)}


def _counted() -> Iterator[Count]:
    """Yield what counts."""
    yield starts
    for name, slope in EACH.items():
        yield partial(_one_more, name, slope)
    first = DIMENSIONS["segments"][1]
    segment = Slope(partial(grown, "segments"), first, 3 * first, python(AUDIT), 0)
    yield partial(_one_more, "segment", segment)
    batches = ("--table-format", "jsonl", "--batches", "--output")
    yield partial(_outputs, "--output, a batch", ("--output",))
    yield partial(_outputs, "--output with batches in JSON lines, a batch", batches)
    yield count_calls


def _of(counted: Count, site: Path | None) -> dict[str, int]:
    """Count, or give nothing where a revision does not know what is asked of it."""
    try:
        return counted(site)
    except (subprocess.CalledProcessError, RuntimeError):
        return {}


def rows(site: Path) -> Iterator[tuple[str, int | None, int | None]]:
    """Yield what is counted, of the revision in a directory and of this tree."""
    for counted in _counted():
        before, now = _of(counted, site), _of(counted, None)
        for name in before | now:
            yield name, before.get(name), now.get(name)


def print_table(site: Path, revision: str) -> None:
    """Print what both take, and how many times as much this tree takes."""
    print(f"| instructions | {revision} | this tree | this tree × {revision} |")
    print("| --- | --- | --- | --- |")
    for name, before, now in rows(site):
        both = [f"{count:,}" if count is not None else "–" for count in (before, now)]
        ratio = f"{now / before:.3f}" if now is not None and before else "–"
        print(f"| {name} | {both[0]} | {both[1]} | {ratio} |", flush=True)

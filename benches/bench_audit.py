"""The audit of a log directory, as a call from Python."""

from pathlib import Path
from typing import Any, Literal

import ottla
import pytest

from benches.data import MIB
from benches.whole import write_log_directory

pytestmark = [pytest.mark.bench, pytest.mark.benchmark(group="audit")]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("level", ["crc", "decode", "full"])
@pytest.mark.parametrize("size", [16 * MIB], ids=["100B-x1000-16MiB"])
def test_a_log_directory_is_audited(
    benchmark: Any, tmp_path: Path, size: int, level: Literal["crc", "decode", "full"], threads: int
) -> None:
    written = write_log_directory(tmp_path, size)
    result = benchmark(lambda: ottla.audit([tmp_path], level=level, threads=threads))
    assert result.exit_code == 0
    if benchmark.stats is not None:
        benchmark.extra_info["bytes_per_s"] = written / benchmark.stats["median"]


@pytest.mark.parametrize("copies", [1, 3])
def test_copies_of_a_partition_are_compared(benchmark: Any, tmp_path: Path, copies: int) -> None:
    paths = [tmp_path / f"broker-{number}" for number in range(copies)]
    written = sum(write_log_directory(path, 16 * MIB) for path in paths)
    result = benchmark(lambda: ottla.audit(paths))
    assert result.exit_code == 0
    if benchmark.stats is not None:
        benchmark.extra_info["bytes_per_s"] = written / benchmark.stats["median"]

"""How fast the tasks of an audit may read."""

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import ottla
import ottla.spark
import pytest
from ottla.audit.plan.plan import plan_audit
from ottla.spark.audit import tasks
from ottla.spark.audit.bins import make_bins
from support.logs import segment, segment_name


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    for number in range(3):
        path = tmp_path / f"orders-{number}" / segment_name(0)
        path.parent.mkdir()
        path.write_bytes(segment(20, records=100))
    return tmp_path


@pytest.mark.parametrize("split_bytes", [None, 65_536])
def test_a_task_takes_as_long_as_its_rate_allows_and_finds_the_same(
    logs: Path, split_bytes: int | None
) -> None:
    plan = plan_audit(logs).split(split_bytes)
    bins = make_bins(plan, level="full", now_ms=0, bin_bytes=1 << 30)
    at_once = list(tasks.scan_rows(bins)(iter([0])))
    seconds = 0.3
    slow = replace(bins, max_mb_per_s=plan.byte_count / seconds / 1e6)
    begin = time.monotonic()
    assert list(tasks.scan_rows(slow)(iter([0]))) == at_once
    assert time.monotonic() - begin >= seconds * 0.99


@pytest.mark.spark
def test_a_slow_audit_is_the_same(spark: Any, logs: Path) -> None:
    slow = ottla.spark.audit(spark, logs, max_mb_per_s=1.0)
    assert slow.summary == ottla.audit(logs).summary
    assert slow.elapsed_s >= slow.summary.bytes / 1e6
    with pytest.raises(ValueError, match=r"^max_mb_per_s is 0, must be finite and above 0$"):
        ottla.spark.audit(spark, logs, max_mb_per_s=0)

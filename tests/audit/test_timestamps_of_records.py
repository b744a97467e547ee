"""What the audit says of the timestamps of records, not only of those in a batch's header."""

from pathlib import Path

import ottla
import pytest
from ottla.records import Compression
from support.logs import TIMESTAMP, write_partition

HOUR = 3_600_000


def suspects(directory: Path, timestamps: list[int], codec: Compression) -> list[str]:
    """Write a log of one batch with these timestamps; return what is suspect about it."""
    data = ottla.build_batch(
        [ottla.NewRecord(value=b"v", timestamp=at) for at in timestamps], compression=codec
    )
    write_partition(directory / "orders-0", {0: data})
    rows = list(ottla.audit(directory).findings)
    assert {row["name"] for row in rows} <= {"timestamp-suspect"}
    return [row["found"] for row in rows]


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_one_record_in_seconds_in_the_middle_of_a_batch_is_suspect(
    codec: Compression, tmp_path: Path
) -> None:
    seconds = TIMESTAMP // 1000
    times = [TIMESTAMP, TIMESTAMP + 1, seconds, TIMESTAMP + 2]
    assert suspects(tmp_path, times, codec) == [str(seconds)]


@pytest.mark.parametrize("times", [[0, 1, 2], [TIMESTAMP, 90_000, TIMESTAMP]])
def test_records_of_a_clock_that_began_at_1970_are_suspect(
    times: list[int], tmp_path: Path
) -> None:
    # A device without a battery for its clock. Retention by time deletes such a log at its next
    # check, so it is not sound.
    assert len(suspects(tmp_path, times, "none")) == 1
    assert ottla.audit(tmp_path).summary.verdict == "SUSPECT"


@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_records_out_of_order_and_without_timestamps_are_not_suspect(
    codec: Compression, tmp_path: Path
) -> None:
    times = [TIMESTAMP, TIMESTAMP - HOUR, -1, TIMESTAMP + 2]
    assert suspects(tmp_path, times, codec) == []

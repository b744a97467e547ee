"""The pages of the docs that measurements write."""

from pathlib import Path

import pytest

from benches.spark import pages
from benches.spark.cost import Parts


def test_each_measurement_writes_its_part_of_the_page_on_speed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "_DOCS", tmp_path)
    monkeypatch.setattr(pages, "tables", lambda written: f"{written} of all jobs\n")
    monkeypatch.setattr(pages, "page", str)
    monkeypatch.setattr(Parts, "of", str)
    speed = tmp_path / "speed.md"
    speed.write_text("# Speed on Spark\n")
    for figures in ("old", "new"):
        pages.write_section(f"{figures} beside a broker\n")
        pages.write_pages(f"{figures} figures")
    pages.write_section("newest beside a broker\n")
    text = speed.read_text()
    assert text.startswith("# Speed on Spark\n")
    assert text.endswith(
        "new figures of all jobs\n\n## Beside Spark's Kafka source\n\nnewest beside a broker\n"
    )
    assert "old" not in text

"""Tries an installed Ottla, and needs nothing else: `python -I release/trial.py examples/data`."""

import platform
import sys
from pathlib import Path

import ottla
from ottla.cli import run

directory = Path(sys.argv[1])
data = (directory / "orders-0/00000000000000000000.log").read_bytes()
assert ottla.check_batches(data) == 85
assert [record.offset for record in ottla.read(data)] == list(range(85))
batch = ottla.build_batch([ottla.NewRecord(b"key", b"value")], compression="zstd")
assert [record.value for record in ottla.read(batch)] == [b"value"]

assert ottla.audit(directory).summary.records == 1203
assert run(["audit", str(directory)]) == 1

optional = {"pyarrow", "polars", "duckdb", "pyspark"} & set(sys.modules)
assert not optional, optional
system, version = platform.platform(), platform.python_version()
print(f"Ottla {ottla.__version__} works on {system}, Python {version}")

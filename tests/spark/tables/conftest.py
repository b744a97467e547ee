"""A session with Delta and Iceberg, which serve one version of PySpark: `make test-tables`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ottla.spark
import pytest
from ottla.spark.work.kind import require_pyspark
from support.clusters import SETTINGS, environ
from support.maven import MissingError
from support.table_streams import PYSPARK, settings


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the directory of all tables."""
    return tmp_path_factory.mktemp("tables")


@pytest.fixture(scope="session")
def tables(root: Path) -> Iterator[Any]:
    """Return a session that has both formats."""
    found = require_pyspark().__version__
    if not found.startswith(f"{PYSPARK}."):
        pytest.fail(f"PySpark is {found}, Delta and Iceberg need {PYSPARK}: make test-tables")
    try:
        formats = settings(root)
    except MissingError as error:
        pytest.fail(f"no Delta and Iceberg: {error}")
    with environ(PYSPARK_PYTHON=sys.executable):
        spark = ottla.spark.session("local[2]", **{**SETTINGS, **formats})
    yield spark
    spark.stop()

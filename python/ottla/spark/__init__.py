"""Ottla on Spark: the same rules and the same results, in the tasks of a cluster.

::

    import ottla.spark

    spark = ottla.spark.session()                 # or the session your platform gives you
    print(ottla.spark.doctor(spark))              # is everything in its place?
    ottla.spark.ship(spark)                       # where the workers have no Ottla of their own

PySpark is loaded when a function is called: importing this package is cheap and needs none.
"""

# A function and its module share their name, so functions are bound here, once, over the modules.
from ottla.spark.audit import audit
from ottla.spark.doctor import doctor
from ottla.spark.jobs import job
from ottla.spark.parquet import validate_parquet
from ottla.spark.read import read
from ottla.spark.session import session
from ottla.spark.ship import ship
from ottla.spark.split import QUARANTINE_COLUMNS, VALID_COLUMNS, split
from ottla.spark.validate import (
    VERDICT_COLUMNS,
    CapturedColumn,
    validate,
    validate_partition,
    verdict_schema,
)

__all__ = [
    "QUARANTINE_COLUMNS",
    "VALID_COLUMNS",
    "VERDICT_COLUMNS",
    "CapturedColumn",
    "audit",
    "doctor",
    "job",
    "read",
    "session",
    "ship",
    "split",
    "validate",
    "validate_parquet",
    "validate_partition",
    "verdict_schema",
]

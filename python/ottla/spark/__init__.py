"""Ottla on Spark: the same rules and the same results, in the tasks of a cluster.

::

    import ottla.spark

    spark = ottla.spark.session()                 # or the session your platform gives you
    print(ottla.spark.doctor(spark))              # is everything in its place?
    ottla.spark.ship(spark)                       # where the workers have no Ottla of their own

PySpark is loaded when a function is called: importing this package is cheap and needs none.
"""

# The function and its package share their name, so the function is bound here, once, over it.
from ottla.spark.audit.audit import audit
from ottla.spark.captured.columns import VERDICT_COLUMNS, CapturedColumn, verdict_schema
from ottla.spark.captured.parquet import validate_parquet
from ottla.spark.captured.rows import validate_partition
from ottla.spark.captured.split import QUARANTINE_COLUMNS, VALID_COLUMNS, split
from ottla.spark.captured.validate import validate
from ottla.spark.setup.doctor import doctor
from ottla.spark.setup.jobs import job
from ottla.spark.setup.session import session
from ottla.spark.setup.ship import ship
from ottla.spark.source.read import read

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

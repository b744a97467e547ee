"""Ottla on Spark: the same rules and the same results, computed by the tasks of a cluster.

::

    import ottla.spark

    spark = ottla.spark.session()                 # or the session that your platform provides
    print(ottla.spark.doctor(spark))              # checks the setup
    ottla.spark.ship(spark)                       # if Ottla is not installed on the workers

PySpark is imported when a function is called: importing this package is cheap and needs no PySpark.
"""

# The function shares its name with its package, so it is bound here over the package.
from ottla.spark.audit.audit import audit
from ottla.spark.captured.columns import VERDICT_COLUMNS, CapturedColumn, verdict_schema
from ottla.spark.captured.history import HISTORY_COLUMNS, validate_in_order
from ottla.spark.captured.parquet import split_parquet, validate_parquet
from ottla.spark.captured.rows import validate_partition
from ottla.spark.captured.split import QUARANTINE_COLUMNS, VALID_COLUMNS, split
from ottla.spark.captured.validate import validate
from ottla.spark.setup.doctor import doctor
from ottla.spark.setup.functions import register
from ottla.spark.setup.jobs import job
from ottla.spark.setup.session import session
from ottla.spark.setup.ship import ship
from ottla.spark.source.read import read

__all__ = [
    "HISTORY_COLUMNS",
    "QUARANTINE_COLUMNS",
    "VALID_COLUMNS",
    "VERDICT_COLUMNS",
    "CapturedColumn",
    "audit",
    "doctor",
    "job",
    "read",
    "register",
    "session",
    "ship",
    "split",
    "split_parquet",
    "validate",
    "validate_in_order",
    "validate_parquet",
    "validate_partition",
    "verdict_schema",
]

"""Ottla on Spark: the same rules and the same results, in the tasks of a cluster.

::

    import ottla.spark

    spark = ottla.spark.session()                 # or the session your platform gives you
    ottla.spark.ship(spark)                       # where the workers have no Ottla of their own

PySpark is loaded when a function is called: importing this package is cheap and needs none.
"""

# A function and its module share their name, so functions are bound here, once, over the modules.
from ottla.spark.audit import audit
from ottla.spark.session import session
from ottla.spark.ship import ship

__all__ = ["audit", "session", "ship"]

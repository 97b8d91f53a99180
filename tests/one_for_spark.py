"""How pytest's processes share out the modules: each one to whoever is free, but those that need Spark all to one,
which starts its JVM once. That takes as long as a thousand other tests.
"""

from xdist.scheduler import LoadScopeScheduling

WITH_SPARK = (
    "tests/compat/test_spark.py",
    "tests/compat/test_spark_transactions.py",
    "tests/spark_jobs/test_delays.py",
    "tests/spark_jobs/test_session.py",
    "tests/spark_jobs/test_transforms.py",
)


def scope_of(module: str) -> str:
    """What has the same scope is for one process."""
    return "Spark" if module in WITH_SPARK else module


class OneForSpark(LoadScopeScheduling):
    """`--dist loadscope` with one exception."""

    def _split_scope(self, nodeid: str) -> str:
        return scope_of(super()._split_scope(nodeid))

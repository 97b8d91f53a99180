"""Modules that need Spark are known, and no other shares what they share."""

import re
from pathlib import Path

from tests.one_for_spark import WITH_SPARK, scope_of

ROOT = Path(__file__).parent.parent


def test_the_modules_that_take_a_session_are_those_that_are_named() -> None:
    taking = [
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("test_*.py")
        if re.search(r"^from pyspark.sql import .*SparkSession", path.read_text(encoding="utf-8"), re.MULTILINE)
    ]
    assert sorted(taking) == sorted(WITH_SPARK)


def test_they_go_to_one_process_and_others_go_by_module() -> None:
    assert len({scope_of(module) for module in WITH_SPARK}) == 1
    assert scope_of("tests/compat/test_adopt.py") == "tests/compat/test_adopt.py"

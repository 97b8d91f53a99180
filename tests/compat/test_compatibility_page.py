"""docs/compatibility.md is what the rows, the pinned versions and the tests' lists say; each test runs its program."""

from importlib.metadata import version

import pytest

from processes.child_process import REPOSITORY
from tests.compat.compatibility_page import PROGRAMS, Program, documentation, module_of, pinned, reasons_to_skip

PAGE = REPOSITORY / "docs" / "compatibility.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == documentation(), "python -m tests.compat.compatibility_page > docs/compatibility.md"


def test_versions_are_those_that_are_installed() -> None:
    for package in ("kafka-python", "aiokafka", "confluent-kafka", "pyspark"):
        assert pinned(package) == version(package)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.word)
def test_each_test_that_is_named_runs_the_program(program: Program) -> None:
    for test in {test for tests in program.tests.values() for test in tests}:
        assert program.word in module_of(test).read_text()


def test_reasons_are_found_wherever_they_stand() -> None:
    source = "def test() -> None:\n    if alone():\n        pytest.skip('nobody there')\n    pytest.skip('of two')\n"
    assert sorted(reasons_to_skip(source)) == ["nobody there", "of two"]

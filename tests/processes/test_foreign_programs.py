"""Programs of others are pinned by their hashes. kafka-python's tests are those of the version that is installed."""

from importlib.metadata import version

from processes.foreign_programs import KAFKA_PYTHON, REQUIREMENTS, SUITES
from tests.source_rules import unpinned_lines


def test_every_package_is_pinned_and_hashed() -> None:
    assert unpinned_lines(SUITES.read_text()) == []
    text = REQUIREMENTS.read_text()
    assert unpinned_lines(text) == []
    for line in REQUIREMENTS.with_suffix(".in").read_text().splitlines():
        assert line.startswith("#") or f"{line} \\" in text.splitlines()


def test_the_tests_are_those_of_the_installed_version() -> None:
    assert version("kafka-python") == KAFKA_PYTHON

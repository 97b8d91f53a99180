"""docs/testing-coverage.md is what the table of APIs and the declarations of their requests say."""

import pytest

from odradek.broker.served import SERVED
from odradek.testing.coverage_page import documentation, named_by
from tests.odradek.testing.pytest_project import ROOT

BY_NAME = {api.name: api for api in SERVED}


def test_the_page_is_up_to_date() -> None:
    page = (ROOT / "docs" / "testing-coverage.md").read_text()
    assert page == documentation(), "make it anew: python -m odradek.testing.coverage_page > docs/testing-coverage.md"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Produce", ["topic", "partition", "transactional id"]),
        ("FindCoordinator", ["group", "transactional id"]),
        ("OffsetFetch", ["topic", "partition", "group"]),
        ("Metadata", ["topic"]),
        ("ApiVersions", []),
    ],
)
def test_what_requests_name(name: str, expected: list[str]) -> None:
    assert named_by(BY_NAME[name]) == expected

"""docs/metrics.md is what the rows say."""

from odradek.broker.pages.metrics_page import documentation
from processes.child_process import REPOSITORY

PAGE = REPOSITORY / "docs" / "metrics.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == documentation(), "python -m odradek.broker.pages.metrics_page > docs/metrics.md"

"""docs/configuration.md is what the rows say."""

from odradek.broker.config.broker_options import BROKER_OPTIONS
from odradek.broker.config.topic_options import TOPIC_OPTIONS
from odradek.broker.pages.configuration_page import documentation
from processes.child_process import REPOSITORY

PAGE = REPOSITORY / "docs" / "configuration.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == documentation(), (
        "python -m odradek.broker.pages.configuration_page > docs/configuration.md"
    )


def test_every_option_stands_on_it_with_its_default() -> None:
    lines = documentation().splitlines()
    for row in (*TOPIC_OPTIONS.values(), *BROKER_OPTIONS.values()):
        found = [line for line in lines if line.startswith(f"| `{row.name}` |")]
        assert found
        assert all(line.count(" | ") == 5 for line in found)
        assert not row.default_text or any(f"| `{row.default_text}` |" in line for line in found)

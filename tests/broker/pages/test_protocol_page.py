"""docs/protocol-support.md is what the rows and the handlers' docstrings say."""

from odradek.broker.pages.protocol_page import documentation, history, summary
from odradek.broker.served import BY_KEY, SERVED
from processes.child_process import REPOSITORY

PAGE = REPOSITORY / "docs" / "protocol-support.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == documentation(), (
        "python -m odradek.broker.pages.protocol_page > docs/protocol-support.md"
    )


def test_every_api_stands_on_it_once_by_key() -> None:
    rows = [line.split(" | ") for line in documentation().splitlines() if line.startswith("| ")][1:]
    keys = [int(cells[0].removeprefix("| ")) for cells in rows]
    assert keys == sorted(BY_KEY)
    assert [cells[1] for cells in rows] == [BY_KEY[key].name for key in keys]
    assert all(len(cells) == 5 for cells in rows)


def test_versions_are_those_served_and_where_they_differ_those_advertised() -> None:
    text = documentation()
    assert "| 0 | Produce | 3–13 (advertised from 0) | 9 |" in text
    assert "| 1 | Fetch | 4–18 | 12 |" in text
    assert "| 75 | DescribeTopicPartitions | 0 | 0 |" in text


def test_every_handler_says_what_it_does_and_what_its_versions_brought() -> None:
    """Their docstrings open with name and key, and end with the versions: `summary` and `history` raise otherwise."""
    for api in SERVED:
        assert summary(api)
        assert history(api)

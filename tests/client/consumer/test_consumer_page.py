"""Each snippet of docs/consumer.md runs as it stands there, against our broker."""

import re
from pathlib import Path
from textwrap import indent
from typing import Any

import pytest

from tests.client.group_readers import orders

PAGE = (Path(__file__).parents[3] / "docs" / "consumer.md").read_text()
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


class Enough(Exception):
    pass


@pytest.mark.parametrize("code", SNIPPETS)
async def test_a_snippet_runs(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    handled: list[bytes] = []

    async def handle(record: Any) -> None:
        handled.append(record.value)
        if len(handled) == 10:
            raise Enough

    async with orders(1, 10) as servers:
        found: dict[str, Any] = {"handle": handle}
        assert "localhost:9092" in code
        exec(f"async def program():\n{indent(code.replace('localhost:9092', servers), '    ')}", found)  # noqa: S102 - our own page
        if "handle" in code:
            with pytest.raises(Enough):
                await found["program"]()
        else:
            await found["program"]()
            assert capsys.readouterr().out.startswith("orders-0 OffsetAndMetadata(offset=10")


def test_the_page_has_snippets() -> None:
    assert len(SNIPPETS) == 2

"""docs/client-configuration.md is what the rows say."""

from pathlib import Path

import pytest

from odradek.client.admin.config import AdminConfig
from odradek.client.configuration.client_config import ClientConfig
from odradek.client.configuration.settings import rows
from odradek.client.configuration_page import documentation
from odradek.client.fetching.config import FetchConfig
from odradek.client.metrics.metrics import METRICS
from odradek.client.producer.config import ProducerConfig

PAGE = Path(__file__).parent.parent.parent / "docs" / "client-configuration.md"


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text() == documentation(), (
        "python -m odradek.client.configuration_page > docs/client-configuration.md"
    )


@pytest.mark.parametrize("kind", [ProducerConfig, AdminConfig, FetchConfig])
def test_every_setting_stands_on_it_with_its_default_and_bounds(kind: type[ClientConfig]) -> None:
    lines = documentation().splitlines()
    for name, row in rows(kind).items():
        found = [line for line in lines if line.startswith(f"| `{name}` |")]
        assert all(line.count(" | ") == 4 for line in found)
        default = f"| `{row.default}` |" if isinstance(row.default, int) else "|"
        secret = " *Never shown.*" if row.is_secret else ""
        assert any(f"{default} {row.expected} | {row.doc}{secret} |" in line for line in found), name


def test_every_metric_stands_on_it() -> None:
    lines = documentation().splitlines()
    for metric in METRICS:
        assert len([line for line in lines if line.startswith(f"| `{metric.name}` | {metric.instrument.value} |")]) == 1

"""An Odradek for the tests of what is measured of groups, with the options that they are measured with."""

from collections.abc import Iterator

import pytest

from benchmarks.groups.group_servers import AT_ONCE
from benchmarks.harness.servers import Server, running_odradek
from processes.odradek_broker import settings_words


@pytest.fixture(scope="session")
def group_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Each test has topics and groups of its own, and leaves it running."""
    with running_odradek(tmp_path_factory.mktemp("groups"), settings_words(AT_ONCE)) as server:
        yield server

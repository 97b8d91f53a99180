"""What every test runs under: asyncio in debug mode, warnings as errors, random order from a printed seed.

The first two and the plugins' options stand in pyproject.toml. A test (or a module, by `pytestmark`) marked
`both_loops` runs once on asyncio's own loop and once on uvloop: only uvloop shows that bytes given to
`transport.write` were changed before they were sent.
"""

import asyncio
import sys
from collections.abc import Callable, Mapping

import pytest

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, LoopFactory]:
    """The event loops that an async test runs on, by the name that its id shows."""
    del config
    factories: dict[str, LoopFactory] = {"asyncio": asyncio.new_event_loop}
    if item.get_closest_marker("both_loops") is not None and sys.platform != "win32":
        import uvloop

        factories["uvloop"] = uvloop.new_event_loop
    return factories


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the seed at the end too, where a quiet run and a long log still show it."""
    seed = config.getoption("randomly_seed", default=None)
    if isinstance(seed, int):
        terminalreporter.write_line(f"random order from seed {seed} (the same again: --randomly-seed={seed})")

"""What every test runs under: asyncio in debug mode, warnings as errors, random order from a printed seed.

The first two and the plugins' options stand in pyproject.toml. A test (or a module, by `pytestmark`) marked
`both_loops` runs once on asyncio's own loop and once on uvloop: only uvloop shows that bytes given to
`transport.write` were changed before they were sent. One marked `virtual_time` runs on the loop of
`tests/client/virtual_time.py`, to whose constructor the marker's arguments go, and fails if it leaves tasks or timers
behind; one with both markers runs on all three.
"""

import asyncio
import gc
import linecache
import os
import sys
import traceback
from asyncio.constants import DEBUG_STACK_DEPTH
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from functools import partial
from itertools import islice
from types import FrameType

import pytest
from hypothesis import settings
from xdist.remote import Producer

from processes.etcd_server import EtcdServer
from tests.one_for_spark import OneForSpark

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


# Spark's JVMs live for seconds here: start fast rather than run fast, as `processes/apache_kafka.py` has it for
# Kafka's.
QUICK_SPARK = "--driver-java-options '-XX:+UseSerialGC -XX:TieredStopAtLevel=1' pyspark-shell"


settings.register_profile("tests", deadline=None)
settings.load_profile("tests")
"""How long an example takes is the machine's affair: on a busy one any may take longer than 0.2 s."""


def pytest_configure(config: pytest.Config) -> None:
    shorten_stacks()
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", QUICK_SPARK)
    config.addinivalue_line("markers", "virtual_time: runs on a loop whose clock jumps from timer to timer")


def shorten_stacks() -> None:
    """Asyncio in debug mode notes where each future was made: the whole stack, for each file of which it looks whether
    it has changed. That was a seventh of what the tests computed. As many frames do as it notes elsewhere.
    """
    walk: Callable[[FrameType | None], Iterator[tuple[FrameType, int]]] = traceback.walk_stack
    traceback.walk_stack = lambda frame: islice(walk(frame), DEBUG_STACK_DEPTH)  # type: ignore[assignment]
    linecache.checkcache = lambda filename=None: None


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, LoopFactory]:
    """The event loops that an async test runs on, by the name that its id shows."""
    del config
    virtual_time = item.get_closest_marker("virtual_time")
    both_loops = item.get_closest_marker("both_loops") is not None
    factories: dict[str, LoopFactory] = {}
    if both_loops or virtual_time is None:
        factories["asyncio"] = asyncio.new_event_loop
    if both_loops and sys.platform != "win32":
        import uvloop

        factories["uvloop"] = uvloop.new_event_loop
    if virtual_time is not None:
        from tests.client.virtual_time import VirtualTimeLoop

        factories["virtual"] = partial(VirtualTimeLoop, **virtual_time.kwargs)
    return factories


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneForSpark | None:
    """Where modules are shared out, those that need Spark go to one process, which starts it once."""
    return OneForSpark(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.fixture(scope="module", autouse=True)
def freeze_what_is_there() -> None:
    """What was imported, collected and reported so far stays. Tests that look for garbage looked there, too: half a
    second each time at the end of a long run."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def etcd_server() -> Iterator[EtcdServer]:
    """One member of etcd for all tests that leave it as it is; each takes a prefix of its own (`address`)."""
    with EtcdServer() as running:
        yield running


@pytest.fixture
async def nothing_is_left() -> AsyncGenerator[None]:
    """Checks, when all other fixtures of the test are down, that its virtual loop has nothing to do any more."""
    from tests.client.virtual_time import check_nothing_is_left

    yield
    await check_nothing_is_left()


@pytest.hookimpl(trylast=True)  # behind the plugin that shuffles them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts `nothing_is_left` around every test on virtual time, and tests that wait for other programs first.

    They take longest, and where several processes share the tests nobody is to begin with such a one at the end.
    """
    items.sort(key=lambda item: item.get_closest_marker("compat") is None)
    for item in items:
        if isinstance(item, pytest.Function) and item.get_closest_marker("virtual_time") is not None:
            item.fixturenames.insert(0, "nothing_is_left")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the seed at the end too, where a quiet run and a long log still show it."""
    seed = config.getoption("randomly_seed", default=None)
    if isinstance(seed, int):
        terminalreporter.write_line(f"random order from seed {seed} (the same again: --randomly-seed={seed})")

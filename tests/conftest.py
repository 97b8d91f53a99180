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
import logging
import os
import sys
import traceback
from collections.abc import AsyncGenerator, Callable, Generator, Iterator, Mapping
from functools import partial
from itertools import islice
from types import FrameType

import pytest
from hypothesis import settings
from xdist.remote import Producer

from processes.etcd_server import EtcdServer
from tests.one_for_spark import OneForSpark
from tests.stuck_tests import StuckTests

LoopFactory = Callable[[], asyncio.AbstractEventLoop]


PATIENCE_S = 60.0
STACK_DEPTH = 3
# Spark's JVMs live for seconds here: start fast rather than run fast, as `processes/apache_kafka.py` has it for
# Kafka's.
QUICK_SPARK = "--driver-java-options '-XX:+UseSerialGC -XX:TieredStopAtLevel=1' pyspark-shell"


settings.register_profile("tests", deadline=None, max_examples=40)
settings.load_profile("tests")
"""How long an example takes is the machine's affair: on a busy one any may take longer than 0.2 s. Each run has other
examples, and `make properties` takes many runs of them."""


def pytest_configure(config: pytest.Config) -> None:
    shorten_stacks()
    os.environ.setdefault("PYSPARK_SUBMIT_ARGS", QUICK_SPARK)
    config.pluginmanager.register(StuckTests(os.dup(2)))
    config.addinivalue_line("markers", "virtual_time: runs on a loop whose clock jumps from timer to timer")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is collected stays: the collector's walks over it were a seventh of the time, in each of the processes."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def shorten_stacks() -> None:
    """Asyncio in debug mode notes where each future was made: the whole stack, for each file of which it looks whether
    it has changed. That was a seventh of what the tests computed; with ten frames, a fifteenth. Three say who it was.
    """
    walk: Callable[[FrameType | None], Iterator[tuple[FrameType, int]]] = traceback.walk_stack
    traceback.walk_stack = lambda frame: islice(walk(frame), STACK_DEPTH)  # type: ignore[assignment]
    linecache.checkcache = lambda filename=None: None


def patient(new_loop: LoopFactory) -> asyncio.AbstractEventLoop:
    """In debug mode a loop warns of a step of 0.1 s: on a busy machine any may take that, and tests read warnings."""
    loop = new_loop()
    loop.slow_callback_duration = PATIENCE_S
    return loop


def pytest_asyncio_loop_factories(config: pytest.Config, item: pytest.Item) -> Mapping[str, LoopFactory]:
    """The event loops that an async test runs on, by the name that its id shows."""
    del config
    virtual_time = item.get_closest_marker("virtual_time")
    both_loops = item.get_closest_marker("both_loops") is not None
    factories: dict[str, LoopFactory] = {}
    if both_loops or virtual_time is None:
        factories["asyncio"] = partial(patient, asyncio.new_event_loop)
    if both_loops and sys.platform != "win32":
        import uvloop

        factories["uvloop"] = partial(patient, uvloop.new_event_loop)
    if virtual_time is not None:
        from tests.client.virtual_time import VirtualTimeLoop

        factories["virtual"] = partial(VirtualTimeLoop, **virtual_time.kwargs)
    return factories


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneForSpark | None:
    """Where modules are shared out, those that need Spark go to one process, which starts it once."""
    return OneForSpark(config, log) if config.getoption("dist") == "loadscope" else None


@pytest.fixture(scope="module", autouse=True)
def collect_what_is_left() -> Iterator[None]:
    """A module that leaves a socket or a coroutine behind fails itself, at the end of its last test, and not whatever
    test runs when it is collected by chance. What is there then stays: tests that look for garbage looked at all that
    was imported and reported so far, half a second each time at the end of a long run."""
    gc.freeze()
    yield
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


@pytest.fixture
def quiet_kafka_python(caplog: pytest.LogCaptureFixture) -> None:
    """It leaves the sockets of connections that were refused to the garbage collector, and its log holds them longer
    than the module that made them."""
    caplog.set_level(logging.CRITICAL, logger="kafka")


@pytest.hookimpl(trylast=True)  # behind the plugin that shuffles them
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Puts `nothing_is_left` around every test on virtual time, and tests that wait for other programs first.

    They take longest, and where several processes share the tests nobody is to begin with such a one at the end. Most
    of them use kafka-python (`quiet_kafka_python`): what it leaves is passed over in all tests of their modules, for
    whichever is the last one has it collected.
    """
    items.sort(key=lambda item: item.get_closest_marker("compat") is None)
    with_others = {item.path for item in items if item.get_closest_marker("compat") is not None}
    for item in items:
        if item.path in with_others:
            item.add_marker(pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning"))
            if isinstance(item, pytest.Function):
                item.fixturenames.insert(0, "quiet_kafka_python")
        if isinstance(item, pytest.Function) and item.get_closest_marker("virtual_time") is not None:
            item.fixturenames.insert(0, "nothing_is_left")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Prints the seed at the end too, where a quiet run and a long log still show it."""
    seed = config.getoption("randomly_seed", default=None)
    if isinstance(seed, int):
        terminalreporter.write_line(f"random order from seed {seed} (the same again: --randomly-seed={seed})")

"""The pytest plugin: fixtures with a real Kafka cluster. It loads itself where Odradek is installed (entry point).

| fixture | scope | what |
|---|---|---|
| `kafka` | session | one broker; for a test marked `kafka`, a cluster as the marker says |
| `kafka_cluster` | session | three brokers, else the same |
| `kafka_clean` | function | `kafka`, reset before the test |
| `kafka_topic` | function | the name of a new topic on `kafka` |

Most runs of pytest that load it have no use for it. So it imports nothing more until a fixture is used (fixtures/), and
it keeps pytest from rewriting the assertions of `odradek.*`, as pytest does in every module of a distribution that has
a plugin: compiling them again would take half a second. `odradek`, `odradek.testing` and this module have been imported
by then; they say PYTEST_DONT_REWRITE, and assert nothing.
"""

import sys
from collections.abc import Generator, Iterator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from odradek.testing.fixtures.kit import Kit
    from odradek.testing.kafka import Kafka

CLUSTERS: Final = ("kafka", "kafka_cluster")
"""The fixtures that a marker has an effect on."""
FIXTURES: Final = (*CLUSTERS, "kafka_clean", "kafka_topic")
MARKER: Final = "kafka(brokers, topics, config, act_as): the cluster that `kafka` or `kafka_cluster` is in this test"
HIDDEN: Final[Any] = getattr(pytest, "HIDDEN_PARAM", "marked")
"""Tests keep their names where pytest can hide a parameter (8.4 and later)."""

_KIT: Final = pytest.StashKey["Kit"]()
_DOUBLES_TOLD: Final = pytest.StashKey[bool]()


class _AsItIs:
    """A finder that stands before pytest's, and has modules of `odradek` imported as they are."""

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return PathFinder.find_spec(name, path, target) if name.startswith("odradek.") else None

    def pytest_unconfigure(self) -> None:
        sys.meta_path[:] = [each for each in sys.meta_path if each is not self]


class _Marked:
    """The parameter of a fixture in one marked test: none equals another, so that each test's cluster is set up."""

    def __init__(self, markers: list[pytest.Mark]) -> None:
        self.markers = markers


# -- options -----------------------------------------------------------------------------------------------------------


def pytest_addoption(parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager) -> None:
    finder = _AsItIs()
    sys.meta_path.insert(0, finder)
    pluginmanager.register(finder)
    parser.addini("odradek_brokers", "brokers of the fixture `kafka` (1)", default="1")
    parser.addini("odradek_config", "options of the brokers, NAME=VALUE lines under Kafka's names", type="linelist")
    parser.addini("odradek_act_as", "the release of Apache Kafka whose versions the brokers tell clients, such as 3.9")
    parser.addini("odradek_mode", "where brokers run: auto, thread or subprocess", default="auto")
    parser.addini("odradek_keep", "a directory for the reports and the brokers' files of tests that fail")
    parser.addini("odradek_xdist", "with pytest-xdist: a cluster a worker (worker), or shared by all", default="worker")
    group = parser.getgroup("odradek")
    group.addoption(
        "--odradek-mode", metavar="MODE", help="where the brokers of `kafka` run: auto, thread or subprocess"
    )
    group.addoption(
        "--odradek-keep", metavar="DIR", help="keep reports and brokers' files of tests that fail in this directory"
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", MARKER)


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def kafka(request: pytest.FixtureRequest) -> "Iterator[Kafka]":
    """A Kafka broker, in memory; for a test that is marked `kafka`, a cluster as the marker says."""
    yield from _lent(request, "kafka")


@pytest.fixture(scope="session")
def kafka_cluster(request: pytest.FixtureRequest) -> "Iterator[Kafka]":
    """A Kafka cluster of three brokers, in memory, or as the marker `kafka` of the test says."""
    yield from _lent(request, "kafka_cluster")


@pytest.fixture
def kafka_clean(kafka: "Kafka") -> "Kafka":
    """The fixture `kafka`, reset: without topics, groups and faults of other tests."""
    kafka.reset()
    return kafka


@pytest.fixture
def kafka_topic(kafka: "Kafka", request: pytest.FixtureRequest) -> str:
    """The name of a new topic with one partition on `kafka`."""
    name = _kit(request.config).topic_name(request.node.name)
    kafka.create_topic(name)
    return name


def _lent(request: pytest.FixtureRequest, name: str) -> "Iterator[Kafka]":
    kit = _kit(request.config)
    marked: _Marked | None = getattr(request, "param", None)
    yield kit.lend(name, marked.markers if marked else [], request.getfixturevalue("tmp_path_factory"))
    kit.give_back(name)


def _kit(config: pytest.Config) -> "Kit":
    if (kit := config.stash.get(_KIT, None)) is None:
        from odradek.testing.fixtures.kit import Kit

        kit = config.stash[_KIT] = Kit(config)
    return kit


# -- tests -------------------------------------------------------------------------------------------------------------


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A marker is a parameter of the session's fixture: so pytest sets it up again for the test."""
    wanted = [name for name in CLUSTERS if name in metafunc.fixturenames]
    if not wanted:
        return
    _tell_of_doubles(metafunc.config)
    if markers := list(metafunc.definition.iter_markers("kafka")):
        for name in wanted:
            metafunc.parametrize(name, [_Marked(markers)], indirect=True, ids=[HIDDEN], scope="session")


def _tell_of_doubles(config: pytest.Config) -> None:
    if config.stash.get(_DOUBLES_TOLD, False):
        return
    config.stash[_DOUBLES_TOLD] = True
    for name, plugin in config.pluginmanager.list_name_plugin():
        if plugin is sys.modules[__name__] or not isinstance(plugin, ModuleType) or name.endswith("conftest.py"):
            continue
        if doubles := [each for each in FIXTURES if _is_fixture(getattr(plugin, each, None))]:
            said = (
                f"two plugins have a fixture `{doubles[0]}`, odradek and {name}, and pytest takes that of the one that "
                f"was loaded last: leave one out by -p no:odradek or -p no:{name}"
            )
            config.issue_config_time_warning(pytest.PytestWarning(said), stacklevel=2)


def _is_fixture(value: object) -> bool:
    return hasattr(value, "_fixture_function_marker") or hasattr(value, "_pytestfixturefunction")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    if (kit := item.config.stash.get(_KIT, None)) is not None:
        kit.begin_test(getattr(item, "fixturenames", ()))
    try:
        return (yield)
    finally:
        if (kit := item.config.stash.get(_KIT, None)) is not None:
            kit.end_test()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed and (kit := item.config.stash.get(_KIT, None)) is not None:
        report.sections += kit.sections(item.nodeid)
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """In the controller of pytest-xdist, for each worker that it starts."""
    if node.config.getini("odradek_xdist") != "worker":
        from odradek.testing.fixtures.kit import WORKERINPUT

        node.workerinput[WORKERINPUT] = _kit(node.config).addresses_for_workers()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    if (kit := session.config.stash.get(_KIT, None)) is not None:
        kit.close()

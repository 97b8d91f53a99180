"""docs/compatibility.md, made from rows here, pinned versions and the tests' own lists: which programs of others the
tests run, and what is left out. `python -m tests.compat.compatibility_page` prints it.
"""

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from odradek.spark_jobs.session import CONNECTOR
from processes.child_process import REPOSITORY
from processes.foreign_programs import REQUIREMENTS as FOREIGN
from processes.foreign_programs import SUITES
from processes.jars import KAFKA_VERSION
from tests.compat.test_foreign_programs import WITH_KCAT
from tests.compat.test_foreign_suites import RUNS, Suite, needs
from tests.compat.test_franz_go import MODULE, WITH_GO
from tests.compat.test_kafka_pythons_own_tests import LEFT_OUT, SKIPPED_BY_ITSELF

DEVELOPMENT: Final = REPOSITORY / "requirements" / "dev.txt"
TESTS: Final = REPOSITORY / "tests" / "compat"
PRODUCE, CONSUME, CLASSIC, KIP_848, STATIC, TRANSACTIONS, ADMIN = PARTS = (
    "produce",
    "consume",
    "classic groups",
    "KIP-848 groups",
    "static members",
    "transactions",
    "administration",
)
GROUPS: Final = "groups_of_clients"
IN_TRANSACTIONS: Final = "transactions_of_clients"


@dataclass(frozen=True, slots=True)
class Program:
    """One row."""

    name: str
    version: str
    word: str
    """Stands in each test that runs it."""
    tests: Mapping[str, tuple[str, ...]]
    """By part: test modules, without `test_`."""


def pinned(package: str, requirements: Path = DEVELOPMENT) -> str:
    """The version that the tests install."""
    [version] = re.findall(rf"^{package}==(\S+)", requirements.read_text(), re.MULTILINE)
    return str(version)


def version_of_module(module: str) -> str:
    """The version of a Go module that the tests fetch."""
    [version] = re.findall(rf"^require {module} v(\S+)", (MODULE / "go.mod").read_text(), re.MULTILINE)
    return str(version)


KAFKA_PYTHON: Final = Program(
    "kafka-python",
    pinned("kafka-python"),
    "kafka",
    {
        PRODUCE: ("kafka_python", "kafka_pythons_own_tests"),
        CONSUME: ("kafka_python", "kafka_pythons_own_tests"),
        CLASSIC: (GROUPS, "mixed_groups", "kafka_pythons_own_tests"),
        STATIC: (GROUPS,),
        TRANSACTIONS: (IN_TRANSACTIONS, "kafka_pythons_own_tests"),
        ADMIN: ("kafka_python", "kafka_pythons_own_tests"),
    },
)
AIOKAFKA: Final = Program(
    "aiokafka",
    pinned("aiokafka"),
    "aiokafka",
    {
        PRODUCE: ("aiokafka",),
        CONSUME: ("aiokafka",),
        CLASSIC: (GROUPS, "mixed_groups"),
        STATIC: (GROUPS,),
        TRANSACTIONS: (IN_TRANSACTIONS,),
    },
)
CONFLUENT_KAFKA: Final = Program(
    "confluent-kafka (librdkafka)",
    pinned("confluent-kafka"),
    "confluent_kafka",
    {
        PRODUCE: ("confluent_kafka",),
        CONSUME: ("confluent_kafka", "closest_replica"),
        CLASSIC: (GROUPS, "mixed_groups"),
        KIP_848: (GROUPS, "mixed_groups"),
        STATIC: (GROUPS,),
        TRANSACTIONS: (IN_TRANSACTIONS, "transaction_versions"),
        ADMIN: ("confluent_kafka",),
    },
)
JAVA: Final = Program(
    "Java's clients, in Apache Kafka's tools",
    KAFKA_VERSION,
    "java",
    {
        PRODUCE: ("java_clients", "verifiable_clients"),
        CONSUME: ("java_clients", "verifiable_clients"),
        CLASSIC: ("verifiable_clients",),
        KIP_848: ("verifiable_clients",),
        STATIC: ("verifiable_clients",),
        TRANSACTIONS: (IN_TRANSACTIONS, "transaction_versions"),
        ADMIN: ("java_clients", "transactions_of_admin", "transactions_command"),
    },
)
SPARK: Final = Program(
    "Spark's Kafka connector",
    f"{CONNECTOR.rpartition(':')[2]} with PySpark {pinned('pyspark')}",
    "spark",
    {PRODUCE: ("spark",), CONSUME: ("spark", "spark_transactions"), TRANSACTIONS: ("spark_transactions",)},
)
FAUST: Final = Program(
    "Faust (faust-streaming)",
    f"{pinned('faust-streaming', FOREIGN)} with aiokafka {pinned('aiokafka', FOREIGN)}",
    "faust",
    {CONSUME: ("foreign_programs",), CLASSIC: ("foreign_programs",), TRANSACTIONS: ("foreign_programs",)},
)
QUIX: Final = Program(
    "Quix Streams",
    f"{pinned('quixstreams', FOREIGN)} with confluent-kafka {pinned('confluent-kafka', FOREIGN)}",
    "quix",
    {CONSUME: ("foreign_programs",), CLASSIC: ("foreign_programs",)},
)
KOMBU: Final = Program(
    "kombu",
    f"{pinned('kombu', FOREIGN)} with confluent-kafka {pinned('confluent-kafka', FOREIGN)}",
    "kombu",
    {PRODUCE: ("foreign_programs",), CONSUME: ("foreign_programs",), CLASSIC: ("foreign_programs",)},
)
KCAT: Final = Program("kcat", "the system's", "kcat", {CONSUME: ("foreign_programs",), CLASSIC: ("foreign_programs",)})
STREAMS: Final = Program(
    "Kafka Streams, `exactly_once_v2`",
    KAFKA_VERSION,
    "StreamsSmokeTest",
    dict.fromkeys((PRODUCE, CONSUME, CLASSIC, TRANSACTIONS), ("kafka_streams",)),
)
CONNECT: Final = Program(
    "Kafka Connect, `exactly.once.source.support`",
    KAFKA_VERSION,
    "ConnectDistributed",
    dict.fromkeys((PRODUCE, CONSUME, CLASSIC, TRANSACTIONS), ("kafka_connect",)),
)
FRANZ_GO: Final = Program(
    "franz-go (kgo)",
    version_of_module("github.com/twmb/franz-go"),
    "kgo",
    dict.fromkeys((PRODUCE, CONSUME, CLASSIC, KIP_848, STATIC, TRANSACTIONS), ("franz_go",)),
)
FASTSTREAM: Final = Program(
    "FastStream",
    f"{pinned('faststream', SUITES)} with aiokafka {pinned('aiokafka', SUITES)} and "
    f"confluent-kafka {pinned('confluent-kafka', SUITES)}",
    "faststream",
    dict.fromkeys((PRODUCE, CONSUME, CLASSIC), ("foreign_suites",)),
)
CONFLUENTS_OWN: Final = Program(
    "confluent-kafka-python's own tests",
    pinned("confluent-kafka", SUITES),
    "confluent-kafka-python",
    dict.fromkeys((PRODUCE, CONSUME, CLASSIC, KIP_848, TRANSACTIONS, ADMIN), ("foreign_suites",)),
)
PROGRAMS: Final = (
    *(KAFKA_PYTHON, AIOKAFKA, CONFLUENT_KAFKA, JAVA, SPARK, FAUST, QUIX, KOMBU, KCAT),
    *(STREAMS, CONNECT, FRANZ_GO, FASTSTREAM, CONFLUENTS_OWN),
)


def module_of(test: str) -> Path:
    return TESTS / f"test_{test}.py"


def reasons_to_skip(source: str) -> Iterator[str]:
    """Those that stand in calls of `pytest.skip`, in no order."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "pytest.skip":
            reason = ast.literal_eval(node.args[0])
            assert isinstance(reason, str)
            yield reason


def _table_of_programs() -> list[str]:
    lines = [f"| program | version | {' | '.join(PARTS)} |", "|---|---|" + "---|" * len(PARTS)]
    for program in PROGRAMS:
        cells = [", ".join(map(_link, program.tests.get(part, ()))) or "–" for part in PARTS]
        lines.append(f"| {program.name} | {program.version} | {' | '.join(cells)} |")
    return lines


def _suites() -> list[Suite]:
    return list({run.suite.repository: run.suite for run in RUNS}.values())


def _table_of_suites() -> list[str]:
    """Each of their runs, with what it found; then what was changed in them."""
    rows = [
        (
            f"[{suite.repository}](https://github.com/{suite.repository})",
            suite.commit[:10],
            run.name,
            str(run.passed),
            "0",
        )
        for run in RUNS
        for suite in [run.suite]
    ]
    lines = ["| repository | commit | run | passed | failed |", "|---|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    lines += ["", "What is changed in them:", ""]
    for suite in _suites():
        lines += [f"- {suite.name}: {reason} (`-p {plugin}`)." for plugin, reason in suite.plugins.items()]
        lines += [f"- {suite.name}, a line of {_named(change.path)}: {change.reason}." for change in suite.changes]
        if not (suite.plugins or suite.changes):
            lines.append(f"- {suite.name}: nothing.")
    return lines


def _table_of_skips() -> list[str]:
    own = _link("kafka_pythons_own_tests")
    rows = [
        (own, f"`{module}`" + (f", `{test}`" if test else ""), reason) for (module, test), reason in LEFT_OUT.items()
    ]
    rows += [(own, f"`{test}`, which skips itself", reason) for test, reason in SKIPPED_BY_ITSELF.items()]
    for suite in _suites():
        rows.append((_link("foreign_suites"), f"{suite.name}, without its folder", str(needs(suite).kwargs["reason"])))
        rows += [
            (_link("foreign_suites"), f"{suite.name}, {_named(path)}", reason)
            for path, reason in suite.left_out.items()
        ]
    for run in RUNS:
        rows += [
            (_link("foreign_suites"), f"{run.suite.name}, {run.name}: `{test}`, which skips itself", reason)
            for test, reason in run.skipped.items()
        ]
    rows.append((_link("foreign_programs"), "kcat, where it is missing", str(WITH_KCAT.kwargs["reason"])))
    rows.append((_link("franz_go"), "all, where Go is missing", str(WITH_GO.kwargs["reason"])))
    for test in sorted({test for program in PROGRAMS for tests in program.tests.values() for test in tests}):
        rows += [
            (_link(test), "with one of its clusters", reason)
            for reason in sorted(reasons_to_skip(module_of(test).read_text()))
        ]
    return ["| test | what | why |", "|---|---|---|", *(f"| {' | '.join(row)} |" for row in rows)]


def _named(path: str) -> str:
    """Of a suite of others, without the first folder: documents name our own tests by the whole path."""
    return f"`{path.removeprefix('tests/')}`"


def _link(test: str) -> str:
    return f"[{test}](../tests/compat/test_{test}.py)"


def documentation() -> str:
    """The text of docs/compatibility.md."""
    return "\n".join(
        [
            "# Clients and programs of others",
            "",
            "<!-- Made by `python -m tests.compat.compatibility_page > docs/compatibility.md`. -->",
            "",
            "`make compat` runs these programs against real brokers of ours, most tests on one broker and on three;",
            "Kafka Streams, Kafka Connect, franz-go, FastStream and confluent-kafka-python's own tests, which take",
            "minutes, are for `make foreign`. A cell names the tests that show the part, and – says that no test does.",
            "Where answers differ from Apache Kafka's stands in [protocol-support.md](protocol-support.md).",
            "",
            *_table_of_programs(),
            "",
            "## Test suites of others",
            "",
            "`make foreign SOURCES=FOLDER` runs what these projects test with a real Kafka, on one broker of the",
            "[test kit](testing.md) in place of theirs.",
            "",
            *_table_of_suites(),
            "",
            "## What is left out",
            "",
            *_table_of_skips(),
            "",
        ]
    )


if __name__ == "__main__":
    sys.stdout.write(documentation())

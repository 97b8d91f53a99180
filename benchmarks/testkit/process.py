"""A new Python process with the test kit: from before it exists until kafka-python's record is on three brokers.

Beside it the same program sends its record to three nodes of Apache Kafka, which are started first, with the options of
a JVM that is to start fast; the clock runs from before that. Processes of ours come in turn with one start of Kafka.
"""

import math
import subprocess
import time
from collections.abc import Mapping, Sequence
from statistics import median

from benchmarks.cluster_process import create_replicated
from benchmarks.figures.figures import Bar, Statement, Summary
from benchmarks.harness.bench import Bench
from benchmarks.harness.cluster_servers import INTERNAL_TOPICS
from benchmarks.harness.results import Outcome
from benchmarks.testkit.installed import Project, ProjectFailed, installed
from benchmarks.testkit.programs.first_record import TOPIC
from benchmarks.testkit.rounds import hold_rounds, outcome_of
from processes.kafka_nodes import kafka_nodes

NAME = "testkit-process"
BAR = Bar("≤", 0.5)
P95_BAR = Bar("≤", 0.6)
KAFKA = "Apache Kafka"
KAFKA_HEAP = "512m"
PROGRAM = "first_record.py"


def measure_testkit_process(bench: Bench) -> Outcome:
    """Raises ProjectFailed, what building and installing do, and what the start of Apache Kafka does."""
    bench.close()
    project, plan = installed(bench), bench.plan
    ours: list[float] = []
    acknowledged(project)  # whatever has to be compiled or read from the device is, now

    def once() -> Mapping[str, float]:
        seconds = [acknowledged(project) for _ in range(plan.testkit_processes)]
        ours.extend(seconds)
        return {"test kit": median(seconds), KAFKA: beside(project)}

    runs = hold_rounds(bench, NAME, plan.testkit_runs, once)
    theirs = Summary(tuple(run.values[KAFKA] for run in runs.ours))
    outcome = outcome_of(NAME, runs)
    title = f"test kit: new process to kafka-python's first acks=all record, three brokers ({len(ours)} processes)"
    outcome.add(
        Statement(title, "s", Summary(tuple(ours)), theirs, BAR, 2),
        Statement("– p95 of these", "s", Summary((percentile(ours, 0.95),)), None, P95_BAR, 2),
    )
    return outcome


def percentile(values: Sequence[float], share: float) -> float:
    """The least of the values that `share` of them do not exceed."""
    return sorted(values)[math.ceil(share * len(values)) - 1]


def acknowledged(project: Project, *servers: str) -> float:
    """Seconds until the program said that its record is acknowledged; it has ended then. Raises ProjectFailed."""
    began_s = time.perf_counter()
    with subprocess.Popen(
        [str(project.python), PROGRAM, *servers],
        cwd=project.directory,
        env=project.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = time.perf_counter() - began_s
        _, errors = process.communicate()
    if line != "acknowledged\n" or process.returncode != 0:
        raise ProjectFailed(f"{PROGRAM} said {line!r} and ended with {process.returncode}:\n{errors[-4000:]}")
    return seconds


def beside(project: Project) -> float:
    """The same with three nodes of Apache Kafka, from before their start. Raises ProjectFailed, ApacheKafkaFailed,
    KafkaError, OSError."""
    began_s = time.perf_counter()
    with kafka_nodes(lambda _node_id: INTERNAL_TOPICS, heap=KAFKA_HEAP) as nodes:
        (node, *_others) = nodes.values()
        create_replicated((node.host, node.port), TOPIC)
        started_s = time.perf_counter() - began_s
        return started_s + acknowledged(project, ",".join(each.bootstrap for each in nodes.values()))

"""The performance tools of Apache Kafka as processes: what they are called with, and what they print.

They run on a JVM with the options of Kafka's own scripts, one for each call.
"""

import re
import subprocess
import time

from benchmarks.load.generator import RUN_TIMEOUT_S
from benchmarks.load.replies import LoadFailed
from processes.apache_kafka import OWN_JVM, java_command

PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
CONSUMER = "org.apache.kafka.tools.ConsumerPerformance"
CONSOLE_CONSUMER = "org.apache.kafka.tools.consumer.ConsoleConsumer"
SILENT_FORMATTER = "org.apache.kafka.tools.consumer.NoOpMessageFormatter"
HEAP = "-Xmx512M"
"""What kafka-producer-perf-test.sh and kafka-consumer-perf-test.sh set."""
SENT = re.compile(r"^(\d+) records sent, ([\d.]+) records/sec \(.*\d+ ms 50th", re.MULTILINE)
CONSUMED = re.compile(r"^\S+ \S+, \S+ \S+, [\d.]+, [\d.]+, (\d+), .*, ([\d.]+)$", re.MULTILINE)
"""start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, …, fetch.nMsg.sec"""
PROCESSED = re.compile(r"Processed a total of (\d+) messages")


def run_tool(main_class: str, *arguments: str) -> str:
    """What a tool prints. Raises LoadFailed."""
    command = java_command(main_class, *arguments, jvm_options=(HEAP, *OWN_JVM), log_level="warn")
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=RUN_TIMEOUT_S)
    if done.returncode != 0:
        raise LoadFailed(f"{main_class} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout + done.stderr


def produce(bootstrap: str, topic: str, records: int, record_bytes: int) -> float:
    """Has ProducerPerformance send records, acks=all; records a second as it says itself. Raises LoadFailed."""
    printed = run_tool(
        PRODUCER,
        *("--bootstrap-server", bootstrap),
        *("--topic", topic),
        *("--num-records", str(records)),
        *("--record-size", str(record_bytes)),
        *("--throughput", "-1"),
        *("--command-property", "acks=all"),
    )
    return parse_rate(SENT, printed, records)


def consume(bootstrap: str, topic: str, records: int) -> float:
    """Has ConsumerPerformance read a topic from its start; records a second without the time that the group took."""
    printed = run_tool(
        CONSUMER, *("--bootstrap-server", bootstrap), *("--topic", topic), *("--num-records", str(records))
    )
    return parse_rate(CONSUMED, printed, records)


def consume_assigned(bootstrap: str, topic: str, records: int) -> float:
    """Has ConsoleConsumer read partition 0 without a group and print nothing; seconds of the whole process."""
    began = time.monotonic()
    printed = run_tool(
        CONSOLE_CONSUMER,
        *("--bootstrap-server", bootstrap),
        *("--topic", topic),
        *("--partition", "0", "--offset", "earliest"),
        *("--max-messages", str(records)),
        *("--formatter", SILENT_FORMATTER),
    )
    seconds = time.monotonic() - began
    if (found := PROCESSED.search(printed)) is None or int(found[1]) != records:
        raise LoadFailed(f"{CONSOLE_CONSUMER} did not read {records} records: {printed[-2000:]}")
    return seconds


def parse_rate(pattern: re.Pattern[str], printed: str, records: int) -> float:
    """Records a second, of a line that also tells how many there were. Raises LoadFailed unless all are in it."""
    found = pattern.findall(printed)
    if not found or int(found[-1][0]) < records:
        raise LoadFailed(f"not all of {records} records: {printed[-2000:]}")
    return float(found[-1][1])

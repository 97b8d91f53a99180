"""A copier of an exactly-once chain: TransactionalMessageCopier of Apache Kafka's system tests, in a JVM of its own.

It aborts one transaction in three. It ends by itself when it has copied as much as there was at its last rebalance, or
is fenced; another life of it goes on then. Its consumer's session is 10 s, its request and poll time-outs are those of
the library. What it prints, a line for each poll, goes to its job's `file`.
"""

import subprocess
import time
from pathlib import Path
from typing import Final

from processes.apache_kafka import java_command, quick_jvm
from processes.jars import APACHE_KAFKA
from tests.cluster.client_session import Job
from tests.cluster.clients import LOOK_S, Client
from tests.cluster.copying import RECORDS_MAX, TRANSACTION_TIMEOUT_MS

MAIN_CLASS: Final = "org.apache.kafka.tools.TransactionalMessageCopier"
HEAP: Final = "-Xmx96m"
START_TIMEOUT_S: Final = 60.0


class JavaCopier(Client):
    """One life of it."""

    telling_signal = None

    def __init__(self, job: Job, log_file: Path, clients: tuple[str, ...] = ()) -> None:
        """`clients`: those of another release of Kafka, as coordinates."""
        super().__init__(job, log_file)
        self._clients = clients
        Path(job.file).touch()

    def command(self) -> list[str]:
        job = self.job
        words = (
            *("--broker-list", job.bootstrap, "--input-topic", job.topic, "--output-topic", job.target),
            *("--input-partition", "-1", "--group-mode", "--consumer-group", job.group, "--use-group-metadata"),
            *("--transactional-id", job.transactional_id, "--transaction-timeout", str(TRANSACTION_TIMEOUT_MS)),
            *("--transaction-size", str(RECORDS_MAX), "--enable-random-aborts"),
        )
        options = (HEAP, *(() if self._clients else quick_jvm()))
        jars = (self._clients, APACHE_KAFKA) if self._clients else (APACHE_KAFKA,)
        java = java_command(MAIN_CLASS, *words, jvm_options=options, log_level="warn", jars=jars)
        return ["sh", "-c", 'exec "$@" >> "$0"', job.file, *java]

    def _wait_until_ready(self, process: "subprocess.Popen[bytes]") -> None:
        """It has fenced the life before it. It may have ended: there was nothing to copy."""
        deadline = time.monotonic() + START_TIMEOUT_S
        while process.poll() is None and not Path(self.job.file).stat().st_size:
            if time.monotonic() > deadline:
                raise self.failure(f"{self.name} is not ready; {self._tail()}")
            time.sleep(LOOK_S)  # between two looks

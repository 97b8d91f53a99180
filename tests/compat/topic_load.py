"""Topics that are created and deleted while a broker is killed: a process that does so until SIGTERM.

    python -m tests.compat.topic_load BOOTSTRAP PREFIX

prints `ready`, and then a line for each answer, as it comes:

    created NAME        deleted NAME        interrupted WHY
"""

import sys
import threading
from pathlib import Path
from typing import Final

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from kafka.errors import TopicAlreadyExistsError

from processes.child_process import ChildProcess
from tests.signals import set_at_sigterm

PAUSE_S: Final = 0.1
RETRY_S: Final = 0.05
STOP_TIMEOUT_S: Final = 60.0


class TopicLoad(ChildProcess):
    """The process, seen from the test."""

    def __init__(self, bootstrap: str, prefix: str, file: Path) -> None:
        super().__init__("topics", log_file=file, dies_with_us=True)
        self._arguments = bootstrap, prefix

    def command(self) -> list[str]:
        return [sys.executable, "-W", "ignore", "-m", "tests.compat.topic_load", *self._arguments]

    def is_ready_line(self, line: str) -> bool:
        return line == "ready"

    def terminate(self, timeout_s: float = STOP_TIMEOUT_S) -> int:
        return super().terminate(timeout_s)

    def names(self, kind: str) -> list[str]:
        """Of topics that were `created` or `deleted`."""
        lines = [line.split() for line in self.output.splitlines() if line.strip()]
        return [words[1] for words in lines if words[0] == kind]


class Changes:
    """What is done in the process. Answers go to standard error, which the test keeps."""

    def __init__(self, bootstrap: str, prefix: str) -> None:
        self._bootstrap = bootstrap
        self._prefix = prefix
        self._stop = threading.Event()
        set_at_sigterm(self._stop)

    def run(self) -> None:
        """Creates topics `<prefix>-<number>` one after the other and deletes every third."""
        number = 0
        while not self._stop.is_set():
            try:
                with KafkaAdminClient(bootstrap_servers=self._bootstrap, request_timeout_ms=10_000) as admin:
                    while not self._stop.is_set():
                        self._change(admin, f"{self._prefix}-{number}", delete=number % 3 == 0)
                        number += 1
                        self._stop.wait(PAUSE_S)
            except Exception as error:  # noqa: BLE001 - the broker is being killed: whatever the client raises then
                say("interrupted", repr(error).replace("\n", " "))
                self._stop.wait(RETRY_S)

    def _change(self, admin: KafkaAdminClient, name: str, *, delete: bool) -> None:
        try:
            admin.create_topics([NewTopic(name, 2, 1)])
        except TopicAlreadyExistsError:
            say("interrupted", name, "was created just before a kill, whose answer never came")
        say("created", name)
        if delete:
            admin.delete_topics([name])
            say("deleted", name)


def say(*words: object) -> None:
    sys.stderr.write(" ".join(map(str, words)) + "\n")
    sys.stderr.flush()


if __name__ == "__main__":
    changes = Changes(*sys.argv[1:])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    changes.run()

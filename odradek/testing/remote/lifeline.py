"""The two pipes to the process of the test, within the process of its cluster; cluster_process.py has the other ends.

When the first one ends, the test is over or its process is dead, and so is the reason for this one.
"""

import faulthandler
import json
import sys
import threading
from contextlib import suppress
from typing import cast

from odradek.broker.launch.supervisor.control import Message, encode, ignore_terminal
from odradek.testing.cluster_options import ClusterOptions
from odradek.testing.remote.values import error_to_json, from_json, to_json


class Lifeline:
    """What is asked, in lines, and what is told. The numbers of the pipes are this program's arguments."""

    def __init__(self) -> None:
        ignore_terminal()
        faulthandler.enable()
        self._asked = open(int(sys.argv[1]), "rb")  # noqa: SIM115 - both live as long as the process
        self._answers = open(int(sys.argv[2]), "wb")  # noqa: SIM115
        self._answering = threading.Lock()

    def options(self) -> ClusterOptions:
        """What the cluster is to be; the first that is asked. Ends the process where nobody does."""
        message = self.next()
        if message is None:
            sys.exit(0)
        return cast(ClusterOptions, from_json(message["begin"]))

    def next(self) -> Message | None:
        """What is asked next; None when nobody asks any more."""
        line = self._asked.readline()
        return cast(Message, json.loads(line)) if line.endswith(b"\n") else None

    def tell(self, message: Message) -> None:
        """In any thread. Where nobody listens any more nothing happens: `next` says so."""
        line = encode(message)
        with self._answering, suppress(BrokenPipeError):
            self._answers.write(line)
            self._answers.flush()

    def tell_ready(self, addresses: dict[int, str]) -> None:
        """HOST:PORT of all brokers, by id."""
        self.tell({"ready": to_json(addresses)})

    def tell_failed(self, error: BaseException) -> None:
        """It cannot start."""
        self.tell({"failed": error_to_json(error)})

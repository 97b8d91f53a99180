"""Calls of a process by several threads of this one: each waits for its own answer, and one of them reads for all.

    to the process      {"begin": {…}}                                       what it is to be; first, and once
                        {"id": 7, "call": "kill", "arguments": {…}}          a row of `Calls` (running_cluster.py)
                        {"id": 8, "contents": "produce", "arguments": […]}   a method of `Contents`
                        {"id": 9, "stop": true}
    from the process    {"ready": …} or {"failed": error}                    first, and once
                        {"id": 7, "result": value} or {"id": 7, "error": error}

Arguments, results and errors are as values.py has them. Answers come in any order.
"""

import threading
from typing import Any

from odradek.testing.remote.cluster_process import ClusterProcess
from odradek.testing.remote.values import from_json, to_json


class CallsToProcess:
    """See the module. In any thread."""

    def __init__(self, process: ClusterProcess) -> None:
        self._process = process
        self._sending = threading.Lock()
        self._changed = threading.Condition()
        self._last_id = 0
        self._waiting: set[int] = set()
        self._answers: dict[int, Any] = {}
        self._is_read = False  # by one of those who wait

    def ask(self, question: dict[str, Any]) -> Any:
        """The result. Raises what was raised there, ClusterProcessEnded, NotSendable."""
        question = {name: to_json(value) for name, value in question.items()}
        with self._sending:
            self._last_id = number = self._last_id + 1
            self._waiting.add(number)
            try:
                self._process.tell({"id": number, **question})
            except BaseException:
                self._waiting.discard(number)
                raise
        try:
            answer = self._answer_to(number)
        finally:
            with self._changed:  # one that was interrupted leaves an answer that nobody wants
                self._waiting.discard(number)
                self._answers.pop(number, None)
        if "error" in answer:
            raise from_json(answer["error"])
        return from_json(answer["result"])

    def _answer_to(self, number: int) -> Any:
        """Raises ClusterProcessEnded."""
        with self._changed:
            while number not in self._answers:
                if self._is_read:
                    self._changed.wait()
                    continue
                self._is_read = True
                try:
                    self._read()
                finally:
                    self._is_read = False
                    self._changed.notify_all()
            return self._answers[number]

    def _read(self) -> None:
        """Waits for answers, while other threads may ask. Raises ClusterProcessEnded."""
        self._changed.release()
        try:
            messages = self._process.heard()
        finally:
            self._changed.acquire()
        self._answers.update((each["id"], each) for each in messages if each["id"] in self._waiting)

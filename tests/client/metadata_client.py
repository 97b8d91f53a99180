"""Metadata with a clock of the test's and a broker that answers as told, for the tests of its rules."""

from collections.abc import Callable

from odradek.client.cluster.metadata import Metadata, Question
from odradek.protocol.messages.metadata import MetadataResponse, MetadataResponseTopic
from tests.client.metadata_answers import answer

MAX_AGE_MS = 300_000
MAX_IDLE_MS = 60_000


class Client:
    """Metadata with a clock, and a broker that answers as told."""

    def __init__(self, chance: Callable[[], float] = lambda: 0.5, **settings: float) -> None:
        self.now_ms = 5000.0
        self.requests = 0
        self.metadata = Metadata(max_age_ms=MAX_AGE_MS, max_idle_ms=MAX_IDLE_MS, random=chance, **settings)
        self.metadata.on_request = self._requested

    def _requested(self) -> None:
        self.requests += 1

    def use(self, *topics: str) -> None:
        for each in topics:
            self.metadata.use(each, self.now_ms)

    def due_in_ms(self) -> float:
        return self.metadata.next_refresh_ms(self.now_ms) - self.now_ms

    def ask(self) -> Question:
        return self.metadata.next_question(self.now_ms)

    def apply(self, question: Question, response: MetadataResponse, api_version: int = 12) -> bool:
        return self.metadata.apply(
            response, question.version, self.now_ms, is_partial=question.is_partial, api_version=api_version
        )

    def refresh(self, *topics: MetadataResponseTopic) -> Question:
        """Waits until a question is due, and answers it."""
        self.now_ms += self.due_in_ms()
        question = self.ask()
        self.apply(question, answer(*topics))
        return question

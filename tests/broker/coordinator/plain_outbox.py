"""What outboxes of tests have in common whose machines take part in no transaction, and do nothing of themselves."""

from collections.abc import Callable
from typing import NoReturn


class PlainOutbox:
    """To be inherited from."""

    def also_of(self, entity_id: str) -> NoReturn:
        raise AssertionError(f"a record of {entity_id} and another one")

    def when_committed(self, entity_id: str, then: Callable[[], None]) -> NoReturn:
        raise AssertionError(f"{entity_id} waits, and {then} was not asked for")

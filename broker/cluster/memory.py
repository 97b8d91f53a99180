"""The metadata store that forgets: for `--memory` and for tests."""

from collections.abc import Callable

from odradek.broker.cluster.local import LocalStore
from odradek.broker.cluster.state import Prepared, State


class MemoryStore(LocalStore):
    """Keeps everything in memory, for the brokers of one process and as long as it runs."""

    def __init__(self) -> None:
        super().__init__(State())

    async def _change(self, prepare: Callable[[], Prepared | None]) -> int:
        if (prepared := prepare()) is not None:
            self._apply(prepared)
        return self._state.revision

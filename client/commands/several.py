"""Commands about several topics: all are tried, what was found is printed, and then each failure is told.

failures = Failures()
found = await failures.or_results(admin.describe_topics(names))
...                                             # print what was found
failures.tell()
"""

from collections.abc import Awaitable, Iterable, Mapping
from typing import TypeVar

from odradek.client.admin.errors import ItemsFailed
from odradek.client.errors.base import ClientError

__all__ = ["Failures"]

K = TypeVar("K")
V = TypeVar("V")


class Failures:
    """Of several calls of Admin, each failure once. `but`: errors that are none to the command."""

    def __init__(self, but: type[ClientError] | tuple[type[ClientError], ...] | None = None) -> None:
        self._but = but
        self._errors: dict[object, ClientError] = {}

    def __bool__(self) -> bool:
        return bool(self._errors)

    async def or_results(self, call: Awaitable[Mapping[K, V]]) -> Mapping[K, V]:
        """What a call has found, by item. Why it has not found the rest is kept."""
        try:
            return await call
        except ItemsFailed as failed:
            for item, error in failed.errors.items():
                self._keep((failed.what, item), error)
            return failed.results
        except ClientError as error:
            self.add(error)
            return {}

    async def or_done(self, call: Awaitable[None], items: Iterable[K]) -> list[K]:
        """For which of its items a call was carried out. Why not for the rest is kept."""
        done = list(items)

        async def results() -> Mapping[K, None]:
            await call
            return dict.fromkeys(done)

        return list(await self.or_results(results()))

    def add(self, error: ClientError) -> None:
        """One that is of no item of a call."""
        self._keep(error.message, error)

    def tell(self) -> None:
        """Raises ItemsFailed with all of them, if there are any."""
        if self._errors:
            raise ItemsFailed("the command", self._errors, {})

    def _keep(self, key: object, error: ClientError) -> None:
        if self._but is None or not isinstance(error, self._but):
            self._errors[key] = error

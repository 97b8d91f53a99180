"""`ItemsFailed`: some of the topics, partitions, brokers or resources of a call failed, each by its own error."""

from collections.abc import Mapping
from typing import Any

from odradek.client.errors.base import ClientError

__all__ = ["ItemsFailed"]

SHOWN_MAX = 3


class ItemsFailed(ClientError):
    """Some items of a call failed; the others were carried out.

    `errors`: by item, the errors of those that failed. `results`: by item, what the call returns for the others.
    """

    hint = "`errors` has the reason of each item; `results` has what succeeded."

    def __init__(self, what: str, errors: Mapping[Any, ClientError], results: Mapping[Any, Any]) -> None:
        shown = "; ".join(f"{item}: {error.message}" for item, error in list(errors.items())[:SHOWN_MAX])
        more = "; and others" if len(errors) > SHOWN_MAX else ""
        self.what = what
        super().__init__(f"{what} failed for {len(errors)} of {len(errors) + len(results)}: {shown}{more}")
        self.errors = dict(errors)
        self.results = dict(results)
        self.retriable = all(error.retriable for error in errors.values())
        self.fatal = any(error.fatal for error in errors.values())

    def without(self, kind: type[ClientError]) -> "ItemsFailed | None":
        """The same without the errors of a kind, where these are no errors to the caller; None: no other is left."""
        others = {item: error for item, error in self.errors.items() if not isinstance(error, kind)}
        return ItemsFailed(self.what, others, self.results) if others else None

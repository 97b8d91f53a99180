"""A transaction that a producer has let go of, for another process to end. Pure."""

from typing import NamedTuple

__all__ = ["PreparedTransaction"]


class PreparedTransaction(NamedTuple):
    """What `Admin.end_transaction` takes, and a program may store: `tuple(prepared)` is plain text and numbers."""

    transactional_id: str
    producer_id: int
    producer_epoch: int

"""Whether a data directory was in use when its broker ran last. Pure.

An operator may put an older copy of a data directory back. It has its clean-shutdown marker and its ids, and lacks what
was acknowledged since. What tells it from the newest are the processes of the broker (lineage.py): the store names the
current one, which is the last that committed anything, and each directory notes the processes that used it:

    the one that the store named current at the last start, those that began since and committed nothing, as far as is
    known, and the last one

A process notes itself durably before its first commit (directories/metadata_revision.py), and without a commit it is
not registered, so it acknowledges nothing. Hence:

* The newest directory notes the current process. It noted it before that one's first commit, and what came later, and
  committed nothing, kept it. A commit that arrives when the next process has begun is of one that is noted.
* A copy that was made before the current process began does not note it.

What is not seen is a copy that was made while the current process ran: it notes that one.
"""

from typing import Final

PENDING_MAX: Final = 100
"""How many processes are noted that began after the current one, and died before they committed anything."""


def was_in_use(noted: tuple[str, ...], current: str | None) -> bool:
    """Whether a directory with this note was in use by the broker's current process. True where nothing tells: a
    directory without a note comes from a former version, and `current` is None for a store that has had no process of
    this broker, or was restored."""
    return not noted or current is None or current in noted


def used_by(noted: tuple[str, ...], current: str | None, incarnation: str) -> tuple[str, ...]:
    """What is noted of a directory of which nothing is missing any more, when the next process uses it."""
    if current is not None:
        noted = noted[noted.index(current) :] if current in noted else (current,)
    return (*noted[:1], *noted[1:][-PENDING_MAX:], incarnation)

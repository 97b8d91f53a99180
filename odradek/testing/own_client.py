"""How the test kit's own clients are known: faults and recorded requests leave them out, and so does a test's log."""

from typing import Final

CLIENT_ID: Final = "odradek-testing"
THREAD_NAME: Final = "odradek test kit"
"""Of the thread in which they run, where it is one of the kit's own."""
RESET_REASON: Final = "the test's cluster is reset"
"""What a member of a group is told that has to leave it."""

"""The producer's memory: one budget of estimated bytes (`buffer_memory`), and a fair queue of those who wait for room.

Pure. A claim is granted in the order in which it was asked for, even when a later and smaller one would fit: so a large
record is not starved. Who waits leaves a callable; it is called when the claim has been granted, that is: the bytes are
taken already, and giving up then means to return them. Until its owner has come back to use it, a granted claim counts
as waiting, so that nobody who has not waited, such as a `send_nowait`, overtakes a `send` that has.

(Source: BufferPool.java, which hands out buffers in the same order. Here records bring bytes of their own, so only
their number is kept.)
"""

from collections import deque
from collections.abc import Callable

__all__ = ["BufferMemory", "Claim"]


class Claim:
    """A place in the queue. `is_granted`: the bytes are its owner's."""

    __slots__ = ("is_granted", "size_bytes", "wake")

    def __init__(self, size_bytes: int, wake: Callable[[], object]) -> None:
        self.size_bytes = size_bytes
        self.wake = wake
        self.is_granted = False


class BufferMemory:
    """The budget. `limit_bytes` can be exceeded only by `take`, for what has been accepted already."""

    __slots__ = ("_queue", "free_bytes", "limit_bytes", "waiting", "was_refused")

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        self.free_bytes = limit_bytes
        self.waiting = 0
        """How many claims are queued, or granted and not used yet."""
        self.was_refused = False
        """Somebody found no room, and no bytes have been released since."""
        self._queue: deque[Claim] = deque()

    @property
    def is_exhausted(self) -> bool:
        """Whether somebody lacks room: then batches are sent without lingering."""
        return self.was_refused or bool(self._queue)

    def try_claim(self, size_bytes: int) -> bool:
        """Takes the bytes if there is room and nobody waits."""
        if size_bytes > self.free_bytes or self.waiting:
            self.was_refused = True
            return False
        self.free_bytes -= size_bytes
        return True

    def queue(self, size_bytes: int, wake: Callable[[], object]) -> Claim:
        """Waits at the end of the queue for bytes that the whole budget has.

        `wake` is called, perhaps at once, when they are granted, in the middle of whatever released them: it should do
        no more than note it. The claim ends by `use` or `give_back` then, by `cancel` at any time.
        """
        assert 0 < size_bytes <= self.limit_bytes
        claim = Claim(size_bytes, wake)
        self._queue.append(claim)
        self.waiting += 1
        self._grant()
        return claim

    def use(self, claimed_bytes: int, size_bytes: int) -> None:
        """The owner of a granted claim keeps so many of its bytes and releases the others."""
        assert self.waiting > len(self._queue), "no claim was granted"
        assert 0 <= size_bytes <= claimed_bytes
        self.waiting -= 1
        if size_bytes < claimed_bytes:
            self.release(claimed_bytes - size_bytes)

    def give_back(self, claimed_bytes: int) -> None:
        """The owner of a granted claim does not need it any more."""
        self.use(claimed_bytes, 0)

    def cancel(self, claim: Claim) -> None:
        """Gives up a claim: its place if it waits, its bytes if they were granted and not used."""
        if claim.is_granted:
            self.give_back(claim.size_bytes)
        else:
            self._queue.remove(claim)
            self.waiting -= 1
            self._grant()  # the next one may fit where this one did not

    def take(self, size_bytes: int) -> None:
        """Takes bytes whether or not there is room: what was accepted turned out larger than estimated."""
        self.free_bytes -= size_bytes

    def release(self, size_bytes: int) -> None:
        self.free_bytes += size_bytes
        assert self.free_bytes <= self.limit_bytes, "more was released than taken"
        self.was_refused = False
        self._grant()

    def _grant(self) -> None:
        while self._queue and self._queue[0].size_bytes <= self.free_bytes:
            claim = self._queue.popleft()
            self.free_bytes -= claim.size_bytes
            claim.is_granted = True
            claim.wake()

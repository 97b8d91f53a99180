"""What code gets that goes on after its process has ended: in the simulator, and in a cluster of the test kit."""


class Killed(SystemExit):
    """The process is gone. Of this class, for asyncio lets it through at once where it keeps every other error."""

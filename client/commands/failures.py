"""How a command ends: its exit codes, and the sentence on standard error.

    0    done
    1    refused or not there: a broker said no, the topic does not exist, a record was not delivered
    2    the command line or the configuration is wrong; nothing was asked of a broker
    3    no answer in time: no broker could be reached, or none that could do it, as while a leader is elected
    130  interrupted by Ctrl-C; 143 by SIGTERM; 141 when who read the output went away

1 is final until something is changed, 3 may pass by itself: that is what scripts have to tell apart.
"""

from typing import Final

__all__ = ["EXIT_CODES_HELP", "CommandFailed", "OutputClosed"]

DONE: Final = 0
REFUSED: Final = 1
USAGE: Final = 2
NO_ANSWER: Final = 3
INTERRUPTED: Final = 130
OUTPUT_CLOSED: Final = 141
TERMINATED: Final = 143

EXIT_CODES_HELP: Final = (
    "Exit codes: 0 done, 1 refused or not there, 2 wrong command line or configuration, "
    "3 no broker answered in time, 130 interrupted."
)


class CommandFailed(Exception):
    """A command cannot do what it was asked to; `code` is its exit code."""

    def __init__(self, sentence: str, code: int = REFUSED) -> None:
        super().__init__(sentence)
        self.code = code


class OutputClosed(Exception):
    """Nobody reads standard output any more, as with `… | head`."""

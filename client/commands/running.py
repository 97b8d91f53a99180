"""Runs the coroutine of a command and ends the process as `odradek.client.commands.failures` promises.

Ctrl-C and SIGTERM cancel the coroutine, which closes what it has opened; a second Ctrl-C does not wait for that.
Whatever goes wrong is one sentence on standard error, with what to do about it, and never a traceback: an error that
nobody thought of gives the traceback to those who ask for `--verbose`.
"""

import asyncio
import logging
import signal
import sys
from collections.abc import Callable, Coroutine
from typing import Any, Final, NoReturn

import click

from odradek.client.admin.errors import ItemsFailed
from odradek.client.commands import failures
from odradek.client.commands.failures import CommandFailed, OutputClosed
from odradek.client.errors.base import ClientError
from odradek.client.errors.client_errors import ConfigError, UnknownTopic
from odradek.runtime.environment import loop_factory

__all__ = ["exit_code_of", "run"]

Command = Callable[[], Coroutine[Any, Any, None]]

logger = logging.getLogger(__name__)

LOG_FORMAT: Final = "%(levelname)s %(name)s: %(message)s"


def run(command: Command, *, is_verbose: bool = False) -> NoReturn:
    """Runs a command on a loop of its own and exits."""
    _configure_logging(is_verbose)
    sys.exit(_run(command, is_verbose))


def _run(command: Command, is_verbose: bool) -> int:
    ended_by: list[int] = []

    async def main() -> None:
        task = asyncio.current_task()
        assert task is not None
        if sys.platform != "win32":

            def terminate() -> None:
                ended_by.append(failures.TERMINATED)
                task.cancel()

            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, terminate)
        await command()

    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(main())
    except KeyboardInterrupt:
        return failures.INTERRUPTED
    except asyncio.CancelledError:
        return ended_by[0] if ended_by else failures.INTERRUPTED
    except OutputClosed:
        return failures.OUTPUT_CLOSED
    except click.ClickException:
        raise  # click tells of a wrong command line itself
    except Exception as error:  # noqa: BLE001 - a mistake of ours is told in one sentence, too
        return _failed(error, is_verbose)
    return failures.DONE


def _failed(error: Exception, is_verbose: bool) -> int:
    """Says what went wrong, and returns the exit code."""
    if is_verbose:
        logger.info("it failed with", exc_info=error)
    if isinstance(error, ItemsFailed):
        for each in error.errors.values():
            _complain(str(each))
    elif isinstance(error, CommandFailed | ClientError | OSError):
        _complain(str(error))
    else:
        _complain(f"{type(error).__name__}: {error}. This is a mistake in odradek; --verbose shows where.")
    return exit_code_of(error)


def exit_code_of(error: Exception) -> int:
    """The exit code for an error that ends a command."""
    match error:
        case ItemsFailed():
            return min(exit_code_of(each) for each in error.errors.values())  # 3 only if all may pass by themselves
        case CommandFailed():
            return error.code
        case ConfigError():
            return failures.USAGE
        case UnknownTopic():
            return failures.REFUSED  # retriable to who has just created it; to who asks for it, it is not there
        case ClientError(retriable=True):
            return failures.NO_ANSWER
        case _:
            return failures.REFUSED


def _complain(sentence: str) -> None:
    click.echo(f"Error: {sentence}", err=True)


def _configure_logging(is_verbose: bool) -> None:
    """What the client does, and why, is told on request: what goes wrong the command says itself, once.

    But for what a reader misses: the command goes on then.
    """
    logging.basicConfig(stream=sys.stderr, format=LOG_FORMAT, level=logging.DEBUG if is_verbose else logging.ERROR)
    if not is_verbose:
        logging.getLogger("odradek.client").setLevel(logging.CRITICAL)
        logging.getLogger("odradek.client.fetching").setLevel(logging.WARNING)

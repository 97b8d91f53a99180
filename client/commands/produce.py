"""`odradek produce`: sends the lines of standard input to a topic, a record each."""

import os
import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import click

from odradek.client.commands.failures import EXIT_CODES_HELP, CommandFailed
from odradek.client.commands.options import Assignment, FiniteRange, Target, on_target
from odradek.client.commands.pace import RATE_MAX, RATE_MIN, Pace

if TYPE_CHECKING:
    from asyncio import TimerHandle

    from odradek.client.commands.record_text import RecordToSend
    from odradek.client.commands.streams import LineReader
    from odradek.client.producer.config import ProducerConfig
    from odradek.client.producer.record_calls import RecordCalls
    from odradek.client.producer.results.delivery import Delivery
    from odradek.client.producer.transaction import Transaction
    from odradek.protocol.batches.records import Headers
    from odradek.runtime.environment import Environment

ABORTED: Final = "The transaction is aborted: nothing of the input counts, so send all of it again."
LEFT: Final = (
    "The transaction will be aborted: nothing of the input counts. Its coordinator could not be told, and does it by "
    "itself after transaction.timeout.ms."
)
ASK: Final = (
    "Before you send it again, ask `odradek transactions describe {id}`: CompleteCommit says that the input counts, "
    "CompleteAbort that it does not."
)
PROGRESS_MS: Final = 500.0
TIMER_MS_MIN: Final = 1.0
"""A timer may ring a little early; a wait for the rest would be repeated over and over."""


@click.command(epilog=EXIT_CODES_HELP)
@click.argument("topic")
@click.option("--key-separator", metavar="TEXT", help="What stands before it in a line is the record's key.")
@click.option("--null-marker", metavar="TEXT", help="A key or value that is this is none: null.")
@click.option("--json", "as_json", is_flag=True, help="Lines are JSON objects, as `consume --json` prints them.")
@click.option("--partition", "-p", type=click.IntRange(0), help="Send to this partition. Default: by key, or any.")
@click.option("--header", "headers", multiple=True, type=Assignment(), help="A header of every record; repeatable.")
@click.option("--transactional-id", metavar="ID", help="Send all of the input in one transaction of this id.")
@click.option("--rate", type=FiniteRange(RATE_MIN, RATE_MAX), metavar="N", help="At most so many records a second.")
@click.option(
    "--set", "settings", multiple=True, type=Assignment(), help="A producer's setting, such as compression.type=zstd."
)
@on_target
async def produce(
    target: Target,
    topic: str,
    key_separator: str | None,
    null_marker: str | None,
    as_json: bool,
    partition: int | None,
    headers: tuple[tuple[str, str], ...],
    transactional_id: str | None,
    rate: float | None,
    settings: tuple[tuple[str, str], ...],
) -> None:
    """Send lines from standard input to a topic.

    Each line is a record. The command ends when all are acknowledged, or at the first one that is not delivered. On a
    terminal progress is shown.

    With --transactional-id the whole input is one transaction: it is committed at the end of the input, and aborted
    when a line is not delivered or the command is interrupted. Whoever had the id before is fenced.
    """
    import asyncio

    from odradek.client.commands.record_text import record_of_json, record_of_line
    from odradek.client.commands.streams import LineReader
    from odradek.client.errors.client_errors import MetadataTimeout
    from odradek.client.producer.producer import Producer
    from odradek.runtime.environment import Environment

    if as_json and (key_separator is not None or null_marker is not None):
        raise click.UsageError("--json leaves nothing to do for --key-separator and --null-marker")
    if transactional_id == "":
        raise click.UsageError("--transactional-id is empty")
    if key_separator == "":
        raise click.UsageError("--key-separator is empty, which stands everywhere")
    separator = None if key_separator is None else os.fsencode(key_separator)  # any bytes, as they were written
    marker = None if null_marker is None else os.fsencode(null_marker)
    parse = record_of_json if as_json else partial(record_of_line, key_separator=separator, null_marker=marker)
    common = tuple((name, os.fsencode(value)) for name, value in headers)
    reader = LineReader(sys.stdin.fileno(), asyncio.get_running_loop())
    environment = Environment()
    wanted = dict(settings) | ({} if transactional_id is None else {"transactional.id": transactional_id})
    async with Producer(config=producer_config(target, dict[str, object](wanted))) as producer:
        txn = None if producer.config.transactional_id is None else await producer.transaction().begin()
        sending = Sending(txn or producer, reader, environment, topic, partition, common)
        progress = Progress(sending, environment)
        try:
            await sending.send_all(parse, rate)
            if txn is None:
                await producer.flush()
            else:
                await ended(txn, sending)
        except asyncio.CancelledError:
            if txn is not None:
                await interrupted(txn)
            raise
        finally:
            progress.close()
    if isinstance(sending.error, MetadataTimeout):
        # A topic that is not there is another matter than a broker that is not.
        async with target.admin(dict(settings)) as admin:
            await admin.describe_topic(topic)
    sending.check()


async def ended(txn: "Transaction", sending: "Sending") -> None:
    """Commits it, or aborts it where a line was not delivered, of which `sending` tells. Raises CommandFailed."""
    from odradek.client.commands.running import exit_code_of
    from odradek.client.errors.base import ClientError
    from odradek.client.errors.transaction_errors import CommitOutcomeUnknown, TransactionFailed

    try:
        if sending.error is None:
            await txn.commit()
            return
        sending.outcome = ABORTED
        await txn.abort()
    except CommitOutcomeUnknown as error:
        said = f"{error.message}. {ASK.format(id=error.transactional_id)}"
        raise CommandFailed(said[:1].upper() + said[1:], exit_code_of(error)) from error
    except TransactionFailed as error:
        sending.outcome = ABORTED
        if sending.error is None:
            raise CommandFailed(f"{error} {ABORTED}", exit_code_of(error)) from error
    except ClientError as error:
        if sending.error is None:
            raise
        sending.outcome = f"Nothing of the input counts: {error}" if error.fatal else LEFT


async def interrupted(txn: "Transaction") -> None:
    """By Ctrl-C or SIGTERM: aborts it, if it was not to be committed already, and says so."""
    from odradek.client.errors.base import ClientError

    said = ABORTED
    if txn.is_open:
        try:
            await txn.abort()
        except ClientError:
            said = LEFT
    elif not txn.is_over:
        said = ASK.format(id=txn.transactional_id)
    click.echo(f"Interrupted. {said}", err=True)


def producer_config(target: Target, settings: dict[str, object]) -> "ProducerConfig":
    """With the command's timeout for all that a producer waits for, where nothing else is set."""
    from odradek.client.configuration.settings import is_default
    from odradek.client.producer.config import ProducerConfig

    timeout_ms = target.timeout_ms
    defaults: dict[str, object] = {
        "request.timeout.ms": timeout_ms,
        "max.block.ms": timeout_ms,
        "close_timeout_ms": timeout_ms,
    }
    config = target.config(ProducerConfig, settings, defaults)
    if is_default(config.delivery_timeout_ms):
        return replace(config, delivery_timeout_ms=max(timeout_ms, config.linger_ms + config.request_timeout_ms))
    return config


class Sending:
    """The way of the lines into the producer, and what became of them."""

    def __init__(
        self,
        producer: "RecordCalls",
        reader: "LineReader",
        environment: "Environment",
        topic: str,
        partition: int | None,
        headers: "Headers",
    ) -> None:
        self.acknowledged = 0
        self.bytes_sent = 0
        self._producer = producer
        self._reader = reader
        self._environment = environment
        self._topic = topic
        self._partition = partition
        self._headers = headers
        self.error: Exception | None = None
        """What the first line that was not delivered failed with."""
        self.outcome = ""
        """What became of the transaction, if there is one."""
        self._failed_line = 0

    async def send_all(self, parse: "Callable[[bytes], RecordToSend]", rate: float | None) -> None:
        """Sends records until the input ends, or one of them cannot be delivered."""
        number = 0
        now_ms = self._environment.monotonic_ms
        pace = None if rate is None else Pace(rate, now_ms())
        while self.error is None and (lines := await self._reader.read()):
            for line in lines:
                number += 1
                while pace is not None and (wait_ms := pace.wait_ms(now_ms())) > 0:
                    await self._environment.sleep(max(wait_ms, TIMER_MS_MIN))
                if self.error is not None:
                    return
                await self._send(number, line, parse)
                if pace is not None:
                    pace.sent(now_ms())

    async def _send(self, number: int, line: bytes, parse: "Callable[[bytes], RecordToSend]") -> None:
        from odradek.client.errors.base import ClientError

        try:
            key, value, headers, timestamp_ms = parse(line)
            await self._producer.send(
                self._topic,
                value,
                key=key,
                partition=self._partition,
                headers=headers + self._headers,
                timestamp_ms=timestamp_ms,
                on_delivery=partial(self._ended, number),
            )
        except ClientError as error:
            self._fail(number, error)
        except ValueError as error:
            self._fail(number, CommandFailed(f"it is no record, {error}."))
        else:
            self.bytes_sent += len(line)

    def _ended(self, number: int, delivery: "Delivery") -> None:
        error = delivery.exception()
        if error is None:
            self.acknowledged += 1
        else:
            self._fail(number, error)

    def _fail(self, number: int, error: Exception) -> None:
        """Ends the sending. The first line that failed is told of, which need not be the first one to be heard of, and
        not those that failed with their transaction, because of another one."""
        from odradek.client.errors.transaction_errors import TransactionFailed

        if self.error is None or (number < self._failed_line and not isinstance(error, TransactionFailed)):
            self.error, self._failed_line = error, number
        self._reader.stop()

    def check(self) -> None:
        """Raises CommandFailed for the first line that was not delivered. Call it when all have ended."""
        from odradek.client.commands.running import exit_code_of

        if self.error is not None:
            said = f"Line {self._failed_line} was not delivered: {self.error} Acknowledged: {self.acknowledged:,}."
            raise CommandFailed(f"{said} {self.outcome}".rstrip(), exit_code_of(self.error))


class Progress:
    """A line on standard error that tells how far the command is, if a person looks at it."""

    def __init__(self, sending: Sending, environment: "Environment") -> None:
        self._sending = sending
        self._environment = environment
        self._began_ms = environment.monotonic_ms()
        self._timer: TimerHandle | None = None
        if sys.stderr.isatty():
            self._show()

    def _show(self) -> None:
        sys.stderr.write(f"\r{self._text()}\x1b[K")
        sys.stderr.flush()
        self._timer = self._environment.loop.call_later(PROGRESS_MS / 1000.0, self._show)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            sys.stderr.write(f"\r{self._text()}\x1b[K\n")

    def _text(self) -> str:
        seconds = (self._environment.monotonic_ms() - self._began_ms) / 1000.0
        rate = self._sending.acknowledged / seconds if seconds > 0 else 0.0
        return (
            f"{self._sending.acknowledged:,} records acknowledged, {self._sending.bytes_sent:,} bytes read, "
            f"{seconds:.1f} s, {rate:,.0f} records/s"
        )

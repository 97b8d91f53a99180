"""A member of a group under test: librdkafka's consumer.

A member asks itself for what is committed when it is assigned partitions, and begins there. Now and then, where the
leader of a partition was cut off while librdkafka looked for its start, the first records after a later assignment are
what it has fetched meanwhile from that old start (2.16.1); then those from the committed offset come. The former are
dropped, and the history says so (`PollFailed`).

Two mistakes of librdkafka's end a member, and no answer of any broker helps: then the process ends with a code of its
own, so that another life of the member is started; to the group it is one that died.

- Its main thread stands still for good (librdkafka_reader.py).
- A static member whose session has ended by its own clock forgets its member id, and sends one more heartbeat, with its
  instance id and no member id, before it has given its partitions up. Every broker answers that with FENCED_INSTANCE_ID
  (ClassicGroup.validateMember), which is fatal to it (confluentinc/librdkafka#3437, in 2.16.1 still). What tells it
  from a member that is fenced wrongly: it has just lost its partitions.
"""

import os
from concurrent.futures import Future, wait
from threading import Thread
from typing import Final

from confluent_kafka import OFFSET_STORED, Consumer, KafkaError, KafkaException
from confluent_kafka import TopicPartition as Partition

from tests.cluster.client_session import POLL_S, RECONNECT_MS, Session, now_ms
from tests.cluster.librdkafka_reader import LOOK_S, RECORDS_MAX, STOOD_STILL, Wakes
from tests.cluster.membership import COMMIT_S, HEARTBEAT_MS, MAX_POLL_INTERVAL_MS, SESSION_TIMEOUT_MS, Membership

STOOD_STILL_CODE: Final = 17
FENCED_ITSELF_CODE: Final = 18
EXCUSED_CODES: Final = {STOOD_STILL_CODE: "stood still", FENCED_ITSELF_CODE: "fenced itself"}


def take_part_with_librdkafka(session: Session) -> None:
    wakes, is_over = Wakes(), Future[None]()
    member = _Member(Membership(session))
    Thread(target=_tell, args=(is_over, member), daemon=True).start()
    while wait([is_over], LOOK_S).not_done:
        if wakes.stand_still():
            member.member.failed(now_ms(), STOOD_STILL)
            session.close()
            os._exit(STOOD_STILL_CODE)  # closing it takes for ever
    is_over.result()


def _tell(is_over: Future[None], member: "_Member") -> None:
    try:
        member.run()
    except Exception as error:  # noqa: BLE001 - it is raised where the result is asked for
        is_over.set_exception(error)
    else:
        is_over.set_result(None)


class _Member:
    """Callbacks come within `consume` and `close`."""

    def __init__(self, member: Membership) -> None:
        self.member = member
        self._has_lost = False
        """Since it was assigned anything."""
        self._starts: dict[int, int] = {}
        """Of what it was assigned: the committed offset, where it was told one."""
        job = member.job
        config: dict[str, object] = {
            "bootstrap.servers": job.bootstrap,
            "group.id": job.group,
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "session.timeout.ms": SESSION_TIMEOUT_MS,
            "heartbeat.interval.ms": HEARTBEAT_MS,
            "max.poll.interval.ms": MAX_POLL_INTERVAL_MS,
            "reconnect.backoff.max.ms": RECONNECT_MS,
            "partition.assignment.strategy": "range",
            "log_level": 3,
        }
        if job.instance_id:
            config["group.instance.id"] = job.instance_id
        if job.commits_in_background:
            config["on_commit"] = self._committed
        self._consumer = Consumer(config)

    def run(self) -> None:
        """Until the session stops."""
        consumer, member = self._consumer, self.member
        consumer.subscribe([member.job.topic], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)
        while not member.session.stop.is_set():
            asked_ms = now_ms()
            found: dict[int, list[tuple[int, bytes | None]]] = {}
            for message in consumer.consume(RECORDS_MAX, POLL_S):
                partition, offset, error = message.partition(), message.offset(), message.error()
                if error is not None:
                    member.failed(asked_ms, error)
                    if error.code() == KafkaError._FATAL:
                        self._end(error)
                    continue
                assert partition is not None
                assert offset is not None
                found.setdefault(partition, []).append((offset, message.value()))
            for partition, records in found.items():
                if partition in member.positions:  # else it was revoked before they were handed over
                    self._process(asked_ms, partition, records)
            self._commit(member.to_commit())
        self._commit(member.to_commit(is_now=True))
        consumer.close()
        member.left()

    def _end(self, error: KafkaError) -> None:
        """Raises KafkaException where the consumer's end is the broker's doing."""
        if not (self.member.job.instance_id and self._has_lost and "fenced" in error.str()):
            raise KafkaException(error)
        self.member.session.close()
        os._exit(FENCED_ITSELF_CODE)

    def _process(self, asked_ms: float, partition: int, records: list[tuple[int, bytes | None]]) -> None:
        first, start = records[0][0], self._starts.get(partition, 0)
        if self.member.positions[partition] is None and first < start:
            self.member.failed(asked_ms, f"left over in partition {partition}: {first}, before {start}")
        else:
            self.member.processed(asked_ms, partition, records)

    def _assigned(self, consumer: Consumer, partitions: list[Partition]) -> None:
        self._has_lost = False
        self.member.assigned(each.partition for each in partitions)
        asked_ms = now_ms()
        try:
            told = consumer.committed(partitions, COMMIT_S)
        except KafkaException as error:
            self.member.failed(asked_ms, error)
            self._starts = {}
            return  # librdkafka asks again
        self._starts = {each.partition: each.offset for each in told if each.error is None and each.offset >= 0}
        topic = self.member.job.topic
        consumer.assign(
            [Partition(topic, each.partition, self._starts.get(each.partition, OFFSET_STORED)) for each in partitions]
        )

    def _revoked(self, consumer: Consumer, partitions: list[Partition]) -> None:
        del consumer
        if not self.member.job.commits_in_background:  # else its answer would come after the revocation
            self._commit(self.member.to_commit(is_now=True))
        self.member.revoked(each.partition for each in partitions)

    def _lost(self, consumer: Consumer, partitions: list[Partition]) -> None:
        del consumer
        self._has_lost = True
        self.member.revoked((each.partition for each in partitions), is_lost=True)

    def _commit(self, offsets: dict[int, int]) -> None:
        """What is committed in the background is answered by `_committed`."""
        if not offsets:
            return
        member = self.member
        wanted = [Partition(member.job.topic, partition, offset) for partition, offset in offsets.items()]
        member.commit_asked(offsets)
        if member.job.commits_in_background:
            self._consumer.commit(offsets=wanted, asynchronous=True)
            return
        try:
            told = self._consumer.commit(offsets=wanted, asynchronous=False)
        except KafkaException as error:
            member.commit_answered(error)
        else:
            member.commit_answered(next((each.error for each in told or () if each.error is not None), None))

    def _committed(self, error: KafkaError | None, partitions: list[Partition]) -> None:
        self.member.commit_answered(error or next((each.error for each in partitions if each.error is not None), None))

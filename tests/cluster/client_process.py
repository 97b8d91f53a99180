"""The process of a client under test: `python -m tests.cluster.client_process JOB`, a Job as JSON (client_session.py).

It says `ready` when it begins, and ends with 0 after SIGTERM, when all that it has sent has ended.
"""

import faulthandler
import sys
from collections.abc import Callable
from typing import Final

from tests.cluster import (
    client_producers,
    client_readers,
    group_members,
    librdkafka_member,
    librdkafka_reader,
    odradek_member,
    offsets_register,
)
from tests.cluster.client_session import TELLING_SIGNAL, Job, Session

KINDS: Final[dict[str, Callable[[Session], None]]] = {
    "kafka-python": client_producers.send_with_kafka_python,
    "librdkafka": client_producers.send_with_librdkafka,
    "odradek": client_producers.send_with_our_own,
    "kafka-python-reader": client_readers.read_with_kafka_python,
    "librdkafka-reader": librdkafka_reader.read_with_librdkafka,
    "odradek-reader": client_readers.read_with_our_own,
    "kafka-python-member": group_members.take_part_with_kafka_python,
    "aiokafka-member": group_members.take_part_with_aiokafka,
    "librdkafka-member": librdkafka_member.take_part_with_librdkafka,
    "odradek-member": odradek_member.take_part_with_our_own,
    "register": offsets_register.keep_register,
}


def main() -> None:
    faulthandler.register(TELLING_SIGNAL)
    session = Session(Job.from_json(sys.argv[1]))
    session.heed_sigterm()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    KINDS[session.job.kind](session)
    session.close()


if __name__ == "__main__":
    main()

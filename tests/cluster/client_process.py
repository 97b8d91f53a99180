"""The process of a client under test: `python -m tests.cluster.client_process JOB`, a Job as JSON (client_session.py).

It says `ready` when it begins, and ends with 0 after SIGTERM, when all that it has sent has ended.
"""

import faulthandler
import sys
from importlib import import_module
from typing import Final

from tests.cluster.client_session import TELLING_SIGNAL, Job, Session

KINDS: Final = {
    "kafka-python": "kafka_python_clients.send_with_kafka_python",
    "librdkafka": "librdkafka_producer.send_with_librdkafka",
    "odradek": "odradek_clients.send_with_our_own",
    "kafka-python-reader": "kafka_python_clients.read_with_kafka_python",
    "librdkafka-reader": "librdkafka_reader.read_with_librdkafka",
    "odradek-reader": "odradek_clients.read_with_our_own",
    "kafka-python-member": "kafka_python_member.take_part_with_kafka_python",
    "aiokafka-member": "aiokafka_member.take_part_with_aiokafka",
    "librdkafka-member": "librdkafka_member.take_part_with_librdkafka",
    "odradek-member": "odradek_member.take_part_with_our_own",
    "register": "offsets_register.keep_register",
    "chain-source": "chain_source.write_chain_source",
    "kafka-python-copier": "kafka_python_copier.copy_with_kafka_python",
    "librdkafka-copier": "librdkafka_copier.copy_with_librdkafka",
    "odradek-copier": "odradek_copier.copy_with_our_own",
}
"""For each a function that takes a Session. Its module is imported where it is needed: hundreds of these processes are
started, and all libraries together take half a second of processor."""


def main() -> None:
    faulthandler.register(TELLING_SIGNAL)
    session = Session(Job.from_json(sys.argv[1]))
    session.heed_sigterm()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    module, name = KINDS[session.job.kind].split(".")
    getattr(import_module(f"tests.cluster.{module}"), name)(session)
    session.close()


if __name__ == "__main__":
    main()

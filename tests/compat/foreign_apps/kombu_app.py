"""A kombu consumer on Kafka, like Celery's workers. `kombu_app.py BOOTSTRAP QUEUE [VALUES …]` sends these, prints each
body that it takes from the queue, and acknowledges it. Its group is `QUEUE-consumer-group`."""

import importlib
import signal
import sys
from typing import Any

kombu: Any = importlib.import_module("kombu")  # which the checkers of types do not find

bootstrap, name, *values = sys.argv[1:]
options = {"kafka_consumer_config": {"auto.offset.reset": "earliest"}}
is_asked_to_stop = False


def stop(*_: Any) -> None:
    global is_asked_to_stop
    is_asked_to_stop = True


def show(body: Any, message: Any) -> None:
    print(body, flush=True)  # noqa: T201
    message.ack()


signal.signal(signal.SIGTERM, stop)
with kombu.Connection(f"confluentkafka://{bootstrap}", transport_options=options) as connection:
    queue = kombu.Queue(name)
    with connection.Producer() as producer:
        for value in values:
            producer.publish(value, routing_key=name, declare=[queue])
    with connection.Consumer(queue, callbacks=[show]):
        while not is_asked_to_stop:
            try:
                connection.drain_events(timeout=0.5)
            except TimeoutError:
                continue

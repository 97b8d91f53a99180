"""What a broker says of single records of a batch that it refuses (KIP-467), on a scripted cluster in virtual time."""

from typing import Any

import pytest

from odradek.client.errors.client_errors import ClientError
from odradek.client.producer.producer import Producer
from odradek.protocol.errors import ErrorCode
from odradek.protocol.messages.produce import BatchIndexAndErrorMessage, ProduceRequest, ProduceResponse
from tests.client.broker_faults import edited, error
from tests.client.scripted_broker import scripted_cluster

pytestmark = pytest.mark.virtual_time

OTHER = "a record beside invalid ones"


@pytest.mark.parametrize(
    ("of_records", "of_partition", "said"),
    [
        ({1: "no key"}, "of all", [OTHER, "no key", OTHER]),
        ({1: None}, "of all", [OTHER, "of all", OTHER]),
        ({0: "no key", 2: None}, "of all", ["no key", OTHER, "of all"]),
        ({0: "no key", 2: None}, None, ["no key", OTHER, ErrorCode.INVALID_RECORD.text]),
    ],
)
async def test_a_record_of_which_nothing_is_said_has_the_words_about_its_partition(
    of_records: dict[int, str | None], of_partition: str | None, said: list[str]
) -> None:
    def name_records(response: ProduceResponse) -> None:
        [answer] = response.responses[0].partition_responses
        answer.error_message = of_partition
        answer.record_errors = [
            BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=text)
            for index, text in of_records.items()
        ]

    settings: dict[str, Any] = {"linger_ms": 10}
    with scripted_cluster() as cluster:
        cluster.create_topic("orders")
        cluster.on(ProduceRequest, error(ErrorCode.INVALID_RECORD), edited(name_records))
        async with Producer(cluster.bootstrap, environment=lambda: cluster.environment, **settings) as producer:
            sent = [await producer.send("orders", b"%d" % number) for number in range(3)]
            failures = await producer.gather(sent, return_exceptions=True)
    for failure, text in zip(failures, said, strict=True):
        assert isinstance(failure, ClientError)
        assert text in str(failure)

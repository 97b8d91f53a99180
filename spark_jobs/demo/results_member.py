"""One member of the group that reads Spark's results: our own consumer, as a process that can be killed.

    python -m odradek.spark_jobs.demo.results_member BOOTSTRAP TOPIC GROUP SESSION_TIMEOUT_MS FILE

Writes a line for each record into the file, `partition offset crc32-of-the-value`, and asks for the next one, by which
this one is done. SIGTERM has it commit, leave the group and end.
"""

import sys
import zlib
from typing import TextIO

from odradek import Consumer
from odradek.spark_jobs.demo.client_process import run_until_told


async def follow(bootstrap: str, topic: str, group_id: str, session_timeout_ms: int, file: TextIO) -> None:
    """Until it is cancelled. Raises what the consumer raises."""
    async with Consumer(
        bootstrap,
        group_id=group_id,
        topics=[topic],
        auto_offset_reset="earliest",
        session_timeout_ms=session_timeout_ms,
        heartbeat_interval_ms=session_timeout_ms // 5,
    ) as consumer:
        async for record in consumer:
            file.write(f"{record.partition} {record.offset} {zlib.crc32(record.value or b'')}\n")


def main(bootstrap: str, topic: str, group_id: str, session_timeout_ms: str, path: str) -> None:
    with open(path, "w", buffering=1, encoding="ascii") as file:  # a line is there when it is written
        run_until_told(follow(bootstrap, topic, group_id, int(session_timeout_ms), file))


if __name__ == "__main__":
    main(*sys.argv[1:])

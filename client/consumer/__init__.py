"""The consumer: a record's way from an answer to the program, and back to what is committed.

`consumer.py` is what a program holds, with `group_calls.py` and `base.py` beneath it; `config.py` has its settings.
`core.py` stands between it and the fetch loop: it is told which partitions are read, by a program that assigns them
itself or by a group's membership (run by `group/`), hands their records out as `records.py` has them, and keeps by
`done_offsets.py` what the program is done with.
"""

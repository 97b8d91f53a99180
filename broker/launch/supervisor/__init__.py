"""A cluster of broker processes on one machine: what starts them, serves their metadata, and stops them.

`supervisor` has the store and the processes; it holds no data and no connection of a client. What a process is told,
and tells, stands in `control`; `broker_process` and `page_process` run in processes of their own. How many there are to
be, and where they listen, is decided in `plan` and `processors`, before anything is started.
"""

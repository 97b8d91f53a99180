"""The transactions of one producer, without a socket or a clock: which state they are in (`states`, `machine`), what is
asked of coordinators (`requests`, as messages of Kafka in `messages`), and what their errors mean (`reactions`).
"""

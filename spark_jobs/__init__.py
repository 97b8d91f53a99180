"""Spark jobs over an Odradek broker: real flight records in, delay statistics per carrier and day out.

`flights` is the command line (`load`, `delays`, `report`), with one module a job beside it. `session` and `sources`
do the IO, `transforms` is pure DataFrame -> DataFrame, `flight_data`, `daily`, `table` and `picture` know the records
without Spark. `demo` runs it all against a broker of its own. Nothing here imports the broker: Spark speaks Kafka to
it. docs/spark.md tells the story.
"""

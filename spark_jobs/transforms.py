"""From flight records to delay statistics: pure DataFrame -> DataFrame, the same on a stream and on a table.

Nothing here reads, writes, or knows a topic's name. Spark 4 runs in ANSI mode, where a failed cast ends the query, so
everything that comes from outside goes through functions that answer null instead (`from_json`, `try_to_timestamp`).
"""

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import IntegerType, StringType, StructField, StructType

from odradek.spark_jobs.daily import LATE_MINUTES
from odradek.spark_jobs.flight_data import COLUMNS, EVENT_ORDER

SPARK_TYPES = {int: IntegerType(), str: StringType()}
FLIGHT_SCHEMA = StructType([StructField(name, SPARK_TYPES[kind]) for name, kind in COLUMNS.items()])
CORRUPT = "_corrupt_record"
TIME_FORMAT = "yyyy-MM-dd'T'HH:mm:ssXXX"
WATERMARK = "2 days"
WINDOW = "1 day"


# -- load ------------------------------------------------------------------------------------------------------------


def in_event_order(flights: DataFrame, row_count_max: int | None = None) -> DataFrame:
    """Flights in one partition, hence one task, sorted by `EVENT_ORDER`: the watermark of `daily_delays` needs that."""
    if row_count_max is not None:
        flights = flights.orderBy(*EVENT_ORDER).limit(row_count_max)
    return flights.coalesce(1).sortWithinPartitions(*EVENT_ORDER)


def late_copy(flights: DataFrame, days: int, row_count_max: int | None = None) -> DataFrame:
    """One row: the last flight of `in_event_order`, its event time moved `days` into the past."""
    last = in_event_order(flights, row_count_max).orderBy(*(F.desc(column) for column in EVENT_ORDER)).limit(1)
    moved = F.to_timestamp("time_hour", TIME_FORMAT) - F.make_dt_interval(F.lit(days))
    return last.withColumn("time_hour", F.date_format(moved, TIME_FORMAT))


def as_flight_records(flights: DataFrame) -> DataFrame:
    """Columns for the Kafka sink: keyed by carrier, JSON with explicit nulls, all to partition 0, so order survives."""
    value = F.to_json(F.struct(*COLUMNS), {"ignoreNullFields": "false"})
    return flights.select(F.col("carrier").alias("key"), value.alias("value"), F.lit(0).alias("partition"))


# -- delays ----------------------------------------------------------------------------------------------------------


def parse_flights(records: DataFrame) -> DataFrame:
    """Kafka source columns -> the same, with `flight` (struct), `event_time` and `reason` (null where the row is good).

    Good means: one JSON object whose known fields have the expected types, with a carrier and a time. Other fields may
    be null or absent, and unknown ones are ignored, so a producer may add fields.
    """
    schema = StructType([*FLIGHT_SCHEMA.fields, StructField(CORRUPT, StringType())])
    options = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "allowSingleQuotes": "false"}
    parsed = records.withColumn("flight", F.from_json(F.col("value").cast("string"), schema, options))
    # Spark also reads years of five digits, which nobody else would read back from a result.
    time = F.when(F.col("flight.time_hour").rlike(r"^\d{4}-"), F.col("flight.time_hour"))
    parsed = parsed.withColumn("event_time", F.try_to_timestamp(time, F.lit(TIME_FORMAT)))
    return parsed.withColumn("reason", _rejection_reason())


def _rejection_reason() -> Column:
    flight = F.col("flight")
    # `from_json` stops reading after the first value: in brackets, whatever follows it is an error or counted.
    value_count = F.json_array_length(F.concat(F.lit("["), F.col("value").cast("string"), F.lit("]")))
    is_one_value = F.coalesce(value_count == 1, F.lit(False))
    return (
        F.when(F.col("value").isNull(), "no value")
        .when(~is_one_value | flight.isNull() | flight[CORRUPT].isNotNull(), "not a JSON object of the expected types")
        .when(F.coalesce(F.trim(flight["carrier"]), F.lit("")) == "", "carrier is missing")
        .when(flight["time_hour"].isNull(), "time_hour is missing")
        .when(F.col("event_time").isNull(), "time_hour is not a time like 2013-01-01T10:00:00Z")
    )


def good_flights(parsed: DataFrame) -> DataFrame:
    """The rows of `parse_flights` that are good, reduced to what the statistics need."""
    return parsed.where(F.col("reason").isNull()).select("event_time", "flight.carrier", "flight.dep_delay")


def dead_letters(parsed: DataFrame) -> DataFrame:
    """The other rows of `parse_flights`, for the Kafka sink: key and value unchanged, reason and origin as headers.

    Topic, partition and offset of the origin identify a row, so whoever reads a repeated dead letter can tell.
    """
    headers = {
        "reason": F.col("reason"),
        "source.topic": F.col("topic"),
        "source.partition": F.col("partition").cast("string"),
        "source.offset": F.col("offset").cast("string"),
    }
    pairs = [F.struct(F.lit(name).alias("key"), text.cast("binary").alias("value")) for name, text in headers.items()]
    rejected = parsed.where(F.col("reason").isNotNull())
    return rejected.select("key", "value", F.array(*pairs).alias("headers"))


def daily_delays(flights: DataFrame) -> DataFrame:
    """`good_flights` -> statistics per carrier and UTC day of the event time: the columns of `daily.DailyDelays`.

    On a stream a flight is dropped when its whole day lies before the watermark, which follows the greatest event time
    of the batches before at a distance of two days. Integers are added up and the percentile is exact (its state is one
    counter per distinct delay), so the numbers can be checked without Spark.
    """
    delay = F.col("dep_delay")
    grouped = flights.withWatermark("event_time", WATERMARK).groupBy(F.window("event_time", WINDOW), "carrier")
    statistics = grouped.agg(
        F.count(F.lit(1)).alias("flights"),
        F.count_if(delay.isNull()).alias("cancelled"),
        F.count_if(delay >= LATE_MINUTES).alias("late"),
        F.coalesce(F.sum(delay), F.lit(0)).alias("delay_sum"),
        F.avg(delay).alias("mean_delay"),
        F.percentile(delay, 0.95).alias("p95_delay"),
        F.max(delay).alias("max_delay"),
    )
    day = F.date_format("window.start", "yyyy-MM-dd").alias("day")
    return statistics.select("carrier", day, *statistics.columns[2:])


def as_result_records(daily: DataFrame) -> DataFrame:
    """Columns for the Kafka sink; the key names carrier and day, so records of one result share a partition."""
    value = F.to_json(F.struct(*daily.columns), {"ignoreNullFields": "false"})
    return daily.select(F.concat_ws("|", "carrier", "day").alias("key"), value.alias("value"))


# -- report ----------------------------------------------------------------------------------------------------------


def last_results(records: DataFrame) -> DataFrame:
    """Kafka source columns of the result topic -> `value` (text) of the last record per key, by offset.

    Equal keys share a partition as long as no partitions are added, hence offsets of one key can be compared.
    """
    last = records.groupBy("key").agg(F.max_by("value", "offset").alias("value"))
    return last.select(F.col("value").cast("string").alias("value"))

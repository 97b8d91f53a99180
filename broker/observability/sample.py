"""A value of a metric, as it is read when somebody looks."""

from odradek.broker.observability.histogram import Histogram
from odradek.runtime.metric import Metric

Sample = tuple[Metric, tuple[str, ...], float | Histogram]
"""The row, the values of its labels, and the value: a `Histogram` where the row is one."""

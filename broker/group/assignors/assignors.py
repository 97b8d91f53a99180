"""The assignors that a broker has, by the names that `group.consumer.assignors` and members use."""

from collections.abc import Mapping

from odradek.broker.group.assignors.range_assignor import assign_range
from odradek.broker.group.assignors.spec import Assignor
from odradek.broker.group.assignors.uniform import assign_uniform

ASSIGNORS: Mapping[str, Assignor] = {"uniform": assign_uniform, "range": assign_range}

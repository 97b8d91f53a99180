"""One broker of the supervisor: what it is to be, its process, and how often that has died."""

from collections.abc import Callable

from odradek.broker.launch.supervisor.child import Child
from odradek.broker.launch.supervisor.child_process import BROKER_MODULE, broker_name
from odradek.broker.launch.supervisor.plan import BrokerPlan
from odradek.broker.launch.supervisor.restarts import Restarts


class Member:
    """A broker that is to run."""

    def __init__(self, plan: BrokerPlan, on_change: Callable[[], None]) -> None:
        self.plan = plan
        self.child = Child(broker_name(plan.node_id), BROKER_MODULE, on_change)
        self.restarts = Restarts()
        self.port = plan.listener.port
        self.metrics_port = 0
        self.is_leaving = False
        """It was asked to end, and is started again by who asked."""
        self.is_down = False
        """It is not started again."""

    @property
    def is_ready(self) -> bool:
        return self.child.ready is not None

    def keep_ports(self) -> None:
        """The ports of its first start are those of all that follow."""
        if self.child.ready is not None:
            self.port = self.child.ready["port"]
            self.metrics_port = self.child.ready["metrics_port"]

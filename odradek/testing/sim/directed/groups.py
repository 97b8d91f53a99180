"""Stories of coordinators of groups, told as those of failures are, on the partition that holds the group."""

from typing import Final

from odradek.testing.sim.directed.stage import Stage, Story, Waits

OUTLIVED_S: Final = (4.0, 8.0)
"""How long the former coordinator is asked while another one answers, too."""


def reached_by_one_client_alone(stage: Stage) -> Waits:
    """Another one coordinates by then, and commits go on there. The former one does not know that, and the client that
    still reaches it, the one that came last, asks it what is committed."""
    if (cast := stage.cast()) is None:
        return
    leader, followers = cast
    others = stage.faults.clients[:-1]
    stage.reset(leader, others)  # they look for another one at once, before their sessions end here
    stage.cut(leader, *followers, *others)
    stage.cut_from_store(leader)
    yield stage.led_by_another(leader)
    yield stage.rng.uniform(*OUTLIVED_S)
    stage.mend()
    yield stage.back(leader)


GROUP_STORIES: Final[dict[str, Story]] = {
    "a coordinator that one client reaches, and nobody else": reached_by_one_client_alone,
}

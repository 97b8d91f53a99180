"""Questions about groups: members that join, sync, leave and are refused, offsets, and what operators ask.

Groups are named after the topic of the question.
"""

from odradek.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from odradek.protocol.messages.find_coordinator import FindCoordinatorRequest
from odradek.protocol.messages.list_groups import ListGroupsRequest
from tests.compat.group_peer import Group, shape
from tests.compat.peer import Peer
from tests.compat.questions import Answer, batch, name_of, produced, question

OFFSETS_TOPIC = "__consumer_offsets"
JOIN, SYNC, HEARTBEAT, LEAVE, COMMIT, FETCH, DESCRIBE = (
    range(10),
    range(6),
    range(5),
    range(6),
    range(2, 10),
    range(1, 10),
    range(7),
)
"""The versions of each."""


# -- joining ---------------------------------------------------------------------------------------------------------
@question
def the_first_join_in_each_version(peer: Peer, topic: str) -> Answer:
    return [shape(Group(peer, f"{topic}-{version}").join(version=version)) for version in JOIN]


@question
def the_second_join_in_each_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for version in JOIN:
        group = Group(peer, f"{topic}-{version}")
        answers.append(shape(group.join(group.join(version=version).member_id, version=version)))
    return answers


@question
def joins_that_are_refused(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    return [
        [shape(group.join(session_ms=session_ms)) for session_ms in (0, 999, 1_800_001)],
        [shape(group.join("nobody", version=version)) for version in JOIN],
        shape(group.join(protocols=())),
        shape(group.join(type_="")),
        shape(group.join("nobody", instance_id="till")),
    ]


@question
def joins_of_a_group_without_a_name(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    group.group_id = ""
    return [shape(group.join(version=version)) for version in JOIN]


@question
def joins_with_a_protocol_that_the_group_does_not_have(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    group.stable()
    return [
        shape(group.join(protocols=("sticky",))),
        shape(group.join(type_="connect")),
        shape(group.join(protocols=())),
        shape(group.join("nobody")),
    ]


@question
def a_leader_that_joins_again(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    member_id = group.stable()
    return shape(group.join(member_id)), group.heartbeat(member_id, 1), group.heartbeat(member_id, 2)


@question
def a_member_that_joins_again_before_it_syncs(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    member_id = group.joined()
    return shape(group.join(member_id)), shape(group.join(member_id, protocols=("range", "sticky")))


@question
def a_protocol_that_is_chosen_of_several(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    member_id = group.join(protocols=("sticky", "range")).member_id
    return shape(group.join(member_id, protocols=("sticky", "range")))


# -- static members --------------------------------------------------------------------------------------------------
@question
def a_static_member_that_comes_back_in_each_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for version in JOIN[5:]:
        group = Group(peer, f"{topic}-{version}")
        first = group.join(instance_id="till", version=version)
        group.sync(first.member_id, assignments={first.member_id: b"all"}, instance_id="till")
        second = group.join(instance_id="till", version=version)
        answers += [
            shape(first),
            shape(second),
            second.leader == first.member_id,
            group.heartbeat(first.member_id, instance_id="till"),
            group.heartbeat(second.member_id, instance_id="till"),
            group.heartbeat(first.member_id),
            group.sync(second.member_id, instance_id="till"),
            group.commit(topic, 0, member_id=first.member_id, generation=1, instance_id="till"),
            group.leave((first.member_id, "till")),
            shape(group.join(first.member_id, instance_id="till", version=version)),
            group.leave(("", "till")),
        ]
    return answers


# -- syncing, heartbeats, leaving ------------------------------------------------------------------------------------
@question
def syncs_in_each_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for version in SYNC:
        group = Group(peer, f"{topic}-{version}")
        answers.append(group.sync("nobody", version=version))
        member_id = group.joined()
        answers += [
            group.sync("nobody", version=version),
            group.sync(member_id, 2, version=version),
            group.sync(member_id, version=version, assignments={member_id: b"all", "nobody": b"lost"}),
            group.sync(member_id, version=version),
        ]
    return answers


@question
def syncs_that_name_another_protocol(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    member_id = group.joined()
    named = [(None, "range"), ("consumer", None), (None, None), ("connect", "range"), ("consumer", "sticky"), ("", "")]
    return [group.sync(member_id, type_=type_, name=name) for type_, name in named]


@question
def a_leader_that_assigns_nothing(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    member_id = group.joined()
    return group.sync(member_id), group.describe()


@question
def heartbeats_in_each_version(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    answers: list[Answer] = [group.heartbeat("nobody", version=version) for version in HEARTBEAT]
    member_id = group.joined()
    answers += [group.heartbeat(member_id, version=version) for version in HEARTBEAT]
    answers += [group.heartbeat(member_id, 2), group.heartbeat("nobody"), group.heartbeat(member_id, -1)]
    answers += [group.heartbeat(member_id, instance_id="till")]
    group.leave((member_id, None))
    answers.append(group.heartbeat(member_id))
    group.group_id = ""
    return [*answers, group.heartbeat(member_id)]


@question
def leaving_in_each_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for version in LEAVE:
        group = Group(peer, f"{topic}-{version}")
        answers.append(group.leave(("nobody", None), version=version))
        member_id = group.stable()
        answers += [
            group.leave(("nobody", None), version=version),
            group.leave((member_id, None), version=version),
            group.leave((member_id, None), version=version),
            group.describe(),
        ]
        group.group_id = ""
        answers.append(group.leave((member_id, None), version=version))
    return answers


@question
def several_that_leave_at_once(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    nobody = group.leave(("", "till"), ("nobody", "other"), ("nobody", None))
    member_id = group.stable()
    return nobody, group.leave(("", "till"), (member_id, "till"), (member_id, None), (member_id, None)), group.leave()


@question
def one_that_was_given_an_id_and_leaves(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    member_id = group.join().member_id
    left = group.leave((member_id, None))
    return left, shape(group.join(member_id)), group.described_as_there()


# -- offsets ---------------------------------------------------------------------------------------------------------
@question
def commits_without_a_group_in_each_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for version in COMMIT:
        group = Group(peer, f"{topic}-{version}")
        answers += [
            group.commit(topic, 0, version=version, member_id="a", generation=1),
            group.commit(topic, 0, version=version, member_id="a", generation=0),
            group.commit(topic, 0, version=version),
            group.commit(topic, 0, version=version, member_id="a"),
            group.commit(topic, 0, version=version, member_id="a", generation=1),
            group.fetch(None),
            group.describe(),
        ]
    return answers


@question
def commits_to_a_group_with_members(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    for version in COMMIT:
        group = Group(peer, f"{topic}-{version}")
        member_id = group.joined()
        answers.append(group.commit(topic, 0, version=version, member_id=member_id, generation=1))
        group.sync(member_id)
        answers += [
            group.commit(topic, 0, version=version, member_id=member_id, generation=1),
            group.commit(topic, 0, version=version, member_id=member_id, generation=2),
            group.commit(topic, 0, version=version, member_id=member_id),
            group.commit(topic, 0, version=version, member_id="nobody", generation=1),
            group.commit(topic, 0, version=version),
            group.commit(topic, 0, version=version, member_id=member_id, generation=1, instance_id="till"),
        ]
    return answers


@question
def commits_of_what_there_is_not(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    return [
        group.commit(f"{topic}-unknown", 0, 1),
        group.commit(topic, 0, 1, -1),
        group.commit(topic),
        group.commit("", 0),
        group.commit(topic, 0, 0),
        group.fetch(None),
    ]


@question
def commits_of_odd_values(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    return [
        group.commit(topic, 0, metadata="m" * 4097),
        group.commit(topic, 0, metadata="ä" * 4096),
        group.commit(topic, 0, metadata="\N{GRINNING FACE}" * 2048),
        group.commit(topic, 0, metadata="\N{GRINNING FACE}" * 2049),
        group.commit(topic, 0, metadata=None),
        group.fetch(None),
        group.commit(topic, 0, offset=-1),
        group.fetch(None),
        group.commit(topic, 0, offset=2**63 - 1),
        group.fetch(None),
        group.commit(topic, 0, version=2, retention_ms=10_000_000),
        group.fetch(None),
    ]


@question
def offsets_of_a_group_without_a_name(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    group.group_id = ""
    answers = [
        group.commit(topic, 0),
        group.fetch([(topic, [0])]),
        group.describe(),
        group.delete_offsets((topic, 0)),
        group.delete(),
    ]
    return [*answers, group.describe()]


@question
def fetches_of_offsets_in_each_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    group, nobody = Group(peer, topic), Group(peer, f"{topic}-nobody")
    group.commit(topic, 0)
    for version in FETCH:
        for each in (group, nobody):
            answers += [
                each.fetch([(topic, [0, 1]), (f"{topic}-unknown", [0])], version=version),
                each.fetch([], version=version),
                each.fetch([(topic, [])], version=version),
            ]
            if version >= 2:
                answers.append(each.fetch(None, version=version))
    return answers


@question
def deletions_of_offsets(peer: Peer, topic: str) -> Answer:
    group = Group(peer, topic)
    answers = [group.delete_offsets((topic, 0)), group.delete_offsets()]
    group.commit(topic, 0)
    answers += [
        group.delete_offsets((f"{topic}-unknown", 0)),
        group.delete_offsets((topic, 9)),
        group.delete_offsets(),
        group.delete_offsets((topic, 0)),
        group.fetch(None),
        group.delete_offsets((topic, 0)),
        group.describe(),
    ]
    return answers


@question
def deletions_of_offsets_of_members(peer: Peer, topic: str) -> Answer:
    group, other, connect = Group(peer, topic), Group(peer, f"{topic}-other"), Group(peer, f"{topic}-connect")
    for each in (group, other, connect):
        each.commit(topic, 0)
    group.stable(topics=[topic])
    other.stable(topics=["another"])
    worker = connect.stable(type_="connect")
    answers = [each.delete_offsets((topic, 0)) for each in (group, other, connect)]
    connect.leave((worker, None))
    return [*answers, connect.delete_offsets((topic, 0))]


# -- operators -------------------------------------------------------------------------------------------------------
@question
def descriptions_in_each_version(peer: Peer, topic: str) -> Answer:
    answers: list[Answer] = []
    nobody, group = Group(peer, f"{topic}-nobody"), Group(peer, topic)
    for operations in (False, True):
        answers += [nobody.describe(version=version, operations=operations) for version in DESCRIBE]
    member_id = group.join().member_id
    answers.append(group.described_as_there())
    group.join(member_id)
    answers.append(group.describe())
    group.sync(member_id, assignments={member_id: b"all"})
    for operations in (False, True):
        answers += [group.describe(version=version, operations=operations) for version in DESCRIBE]
    group.leave((member_id, None))
    return [*answers, group.describe()]


@question
def lists_of_groups(peer: Peer, topic: str) -> Answer:
    simple, stable, empty = (Group(peer, f"{topic}-{name}") for name in ("simple", "stable", "empty"))
    simple.commit(topic, 0)
    stable.stable()
    empty.leave((empty.stable(type_="connect"), None))

    def listed(states: list[str], types: list[str], version: int = 5) -> Answer:
        request = ListGroupsRequest(states_filter=states, types_filter=types)
        answer = peer.ask(request, version)
        own = [each for each in answer.groups if each.group_id.startswith(f"{topic}-")]
        found = sorted(
            (each.group_id[len(topic) :], each.protocol_type, each.group_state, each.group_type) for each in own
        )
        return name_of(answer.error_code), found

    filters: list[tuple[list[str], list[str]]] = [
        (["Stable"], []),
        (["empty", " STABLE "], []),
        (["Dead"], []),
        (["nothing"], []),
        ([""], []),
        ([], ["classic"]),
        ([], ["Classic", "consumer"]),
        ([], ["consumer"]),
        (["Empty"], ["classic"]),
    ]
    return [listed([], [], version) for version in range(6)], [listed(states, types) for states, types in filters]


@question
def deletions_of_groups(peer: Peer, topic: str) -> Answer:
    group, nobody = Group(peer, topic), Group(peer, f"{topic}-nobody")
    answers: list[Answer] = [nobody.delete(version=version) for version in range(3)]
    member_id = group.stable()
    group.commit(topic, 0, member_id=member_id, generation=1)
    answers.append(group.delete(nobody.group_id, group.group_id))
    group.leave((member_id, None))
    answers += [group.delete(group.group_id), group.describe(), group.fetch([(topic, [0])])]
    return [*answers, group.delete(), shape(group.join()), group.delete()]


@question
def coordinators_of_what_there_is_not(peer: Peer, topic: str) -> Answer:
    Group(peer, topic)
    answers: list[Answer] = []
    for key_type, version in ((9, 3), (9, 4), (2, 3), (2, 5)):
        if version < 4:
            answers.append(
                name_of(peer.ask(FindCoordinatorRequest(key="a:b:0", key_type=key_type), version).error_code)
            )
        else:
            request = FindCoordinatorRequest(coordinator_keys=["a"], key_type=key_type)
            answer = peer.ask(request, version)
            answers.append((name_of(answer.error_code), [name_of(each.error_code) for each in answer.coordinators]))
    return answers


@question
def coordinators_of_groups(peer: Peer, topic: str) -> Answer:
    Group(peer, topic)
    answers: list[Answer] = []
    for version in range(7):
        if version < 4:
            one = peer.ask(FindCoordinatorRequest(key=topic), version)
            answers.append((name_of(one.error_code), one.node_id >= 0, one.error_message))
        else:
            several = peer.ask(FindCoordinatorRequest(coordinator_keys=[topic, "", topic]), version)
            found = [(name_of(each.error_code), each.node_id >= 0, each.error_message) for each in several.coordinators]
            answers.append((name_of(several.error_code), found))
    return answers


@question
def clients_that_write_to_the_offsets_topic(peer: Peer, topic: str) -> Answer:
    Group(peer, topic)
    partitions = [DeleteRecordsPartition(partition_index=0, offset=-1)]
    request = DeleteRecordsRequest(topics=[DeleteRecordsTopic(name=OFFSETS_TOPIC, partitions=partitions)], timeout_ms=9)
    [deleted] = peer.ask(request, 2).topics[0].partitions
    return produced(peer, OFFSETS_TOPIC, batch()), name_of(deleted.error_code)

"""The consumer group of KIP-848: members heartbeat, the broker assigns. Pure.

`group` is one group; it is changed by `edits` of its `group_state` alone, which are records at the same time
(`stored_records`). `assigning`, `reconciliation` and `subscriptions` say what comes next; `member_checks` and
`commit_checks` say who may do what.
"""

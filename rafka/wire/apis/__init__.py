"""One file per API, and the table of them all.

`APIS[key]` imports the file when somebody asks for it: a broker reads the declarations
of what its clients use, and of no more.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final

from ..api import Api

_MODULES: Final = {
    0: "produce",
    1: "fetch",
    2: "list_offsets",
    3: "metadata",
    8: "offset_commit",
    9: "offset_fetch",
    10: "find_coordinator",
    11: "join_group",
    12: "heartbeat",
    13: "leave_group",
    14: "sync_group",
    15: "describe_groups",
    16: "list_groups",
    17: "sasl_handshake",
    18: "api_versions",
    19: "create_topics",
    20: "delete_topics",
    21: "delete_records",
    22: "init_producer_id",
    23: "offset_for_leader_epoch",
    24: "add_partitions_to_txn",
    25: "add_offsets_to_txn",
    26: "end_txn",
    27: "write_txn_markers",
    28: "txn_offset_commit",
    32: "describe_configs",
    33: "alter_configs",
    35: "describe_log_dirs",
    36: "sasl_authenticate",
    37: "create_partitions",
    42: "delete_groups",
    43: "elect_leaders",
    44: "incremental_alter_configs",
    45: "alter_partition_reassignments",
    46: "list_partition_reassignments",
    47: "offset_delete",
    57: "update_features",
    60: "describe_cluster",
    61: "describe_producers",
    65: "describe_transactions",
    66: "list_transactions",
    69: "consumer_group_describe",
    74: "list_config_resources",
    75: "describe_topic_partitions",
    30_000: "group_history",
}


class _Apis(Mapping[int, Api]):
    def __init__(self) -> None:
        self._found: dict[int, Api] = {}

    def __getitem__(self, key: int) -> Api:
        api = self._found.get(key)
        if api is None:
            name = _MODULES[key]
            module = import_module(f".{name}", __name__)
            api = self._found[key] = getattr(module, name.upper())
        return api

    def __iter__(self) -> Iterator[int]:
        return iter(_MODULES)

    def __len__(self) -> int:
        return len(_MODULES)


APIS: Final[Mapping[int, Api]] = _Apis()

"""`rafka cluster`: who the brokers are, and what they speak."""

from __future__ import annotations

import argparse
from typing import Final

from ..client import Client
from ..wire.apis import APIS
from .connected import add_command, add_json, run_connected
from .output import DONE, add_bootstrap, print_json, print_table

DESCRIPTION = "Show a cluster: its brokers, and which APIs and features they have."

EXAMPLES = """\
  rafka cluster info
  rafka cluster info -b kafka1:9092,kafka2:9092 --json
  rafka cluster api-versions
"""

# Names of APIs that rafka has no declaration of.
OTHER_APIS: Final = {
    29: "DescribeAcls",
    30: "CreateAcls",
    31: "DeleteAcls",
    34: "AlterReplicaLogDirs",
    38: "CreateDelegationToken",
    39: "RenewDelegationToken",
    40: "ExpireDelegationToken",
    41: "DescribeDelegationToken",
    48: "DescribeClientQuotas",
    49: "AlterClientQuotas",
    50: "DescribeUserScramCredentials",
    51: "AlterUserScramCredentials",
    55: "DescribeQuorum",
    64: "UnregisterBroker",
    68: "ConsumerGroupHeartbeat",
    71: "GetTelemetrySubscriptions",
    72: "PushTelemetry",
    76: "ShareGroupHeartbeat",
    77: "ShareGroupDescribe",
    78: "ShareFetch",
    79: "ShareAcknowledge",
    80: "AddRaftVoter",
    81: "RemoveRaftVoter",
    83: "InitializeShareGroupState",
    84: "ReadShareGroupState",
    85: "WriteShareGroupState",
    86: "DeleteShareGroupState",
    87: "ReadShareGroupStateSummary",
    88: "StreamsGroupHeartbeat",
    89: "StreamsGroupDescribe",
    90: "DescribeShareGroupOffsets",
    91: "AlterShareGroupOffsets",
    92: "DeleteShareGroupOffsets",
}


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    info = add_command(
        commands,
        "info",
        _info,
        "show the cluster's id, its brokers and how much is on it",
        "  rafka cluster info\n  rafka cluster info --json\n",
    )
    versions = add_command(
        commands,
        "api-versions",
        _api_versions,
        "show which APIs a broker offers, in which versions, and its features",
        "  rafka cluster api-versions\n  rafka cluster api-versions --broker 1\n",
    )
    versions.add_argument(
        "--broker", type=int, metavar="ID", help="of this one (else of the first that answers)"
    )
    for parser in (info, versions):
        add_json(parser)
        add_bootstrap(parser)


def run(args: argparse.Namespace) -> int:
    code: int = args.act(args)
    return code


def _info(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        cluster = await client.admin.cluster()
        topics = [one for one in await client.admin.list_topics() if not one.internal]
        partitions = sum(len(one.partitions) for one in topics)
        leaders = [part.leader for one in topics for part in one.partitions]
        if args.json:
            print_json(
                {
                    "cluster_id": cluster.cluster_id,
                    "controller": cluster.controller_id,
                    "topics": len(topics),
                    "partitions": partitions,
                    "brokers": [
                        {"id": n.node_id, "host": n.host, "port": n.port, "rack": n.rack}
                        for n in cluster.nodes
                    ],
                }
            )
            return DONE
        print(f"Cluster: {cluster.cluster_id}  Topics: {len(topics)}  Partitions: {partitions}")
        print_table(
            ["BROKER", "ADDRESS", "RACK", "LEADS", "ROLE"],
            [
                [
                    node.node_id,
                    node.address,
                    node.rack,
                    leaders.count(node.node_id),
                    "controller" if node.node_id == cluster.controller_id else None,
                ]
                for node in cluster.nodes
            ],
        )
        return DONE

    return run_connected(args, show)


def _api_versions(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        reply = await client.admin.api_versions(args.broker)
        levels = {one.name: one.max_version_level for one in reply.finalized_features}
        apis = [
            {
                "key": one.api_key,
                "name": api_name(one.api_key),
                "min": one.min_version,
                "max": one.max_version,
            }
            for one in reply.api_keys
        ]
        features = [
            {
                "name": one.name,
                "min": one.min_version,
                "max": one.max_version,
                "finalized": levels.get(one.name),
            }
            for one in sorted(reply.supported_features, key=lambda one: one.name)
        ]
        if args.json:
            print_json({"apis": apis, "features": features})
            return DONE
        print_table(["KEY", "API", "MIN", "MAX"], [list(one.values()) for one in apis])
        if features:
            print()
            print_table(["FEATURE", "MIN", "MAX", "FINALIZED"], [list(one.values()) for one in features])
        return DONE

    return run_connected(args, show)


def api_name(key: int) -> str | None:
    """Kafka's name of an API; None where it is not known here."""
    return APIS[key].name if key in APIS else OTHER_APIS.get(key)

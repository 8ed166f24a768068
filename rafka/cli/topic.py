"""`rafka topic`: create, list, describe, alter and delete topics, and ask for their offsets."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence

from ..client import BrokerRefused, Client, NewTopic, Outcome, TopicInfo, TopicPartition, UnknownTopic
from ..client.offsets import EARLIEST, LATEST
from ..errors import ErrorCode
from ..text import plain
from ..types import topic_id_text
from . import topic_offsets
from .connected import add_command, add_json, checked, confirm, key_value, run_connected, somebody_can_say_no
from .output import (
    ASKED_WRONGLY,
    DONE,
    FAILED,
    CommandError,
    add_bootstrap,
    complain,
    print_json,
    print_table,
)

DESCRIPTION = "Create, list, describe, alter and delete topics. Works with any Kafka-compatible broker."

EXAMPLES = """\
  rafka topic create orders -p 3                       a topic of three partitions
  rafka topic list                                     their names
  rafka topic describe orders                          partitions, leaders, offsets, configs
  rafka topic alter orders -c retention.ms=3600000     keep records for an hour
  rafka topic offsets orders --time earliest           where each partition begins
  rafka topic delete orders

`rafka topic COMMAND --help` tells more of each.
"""


def configure(parser: argparse.ArgumentParser) -> None:
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    _configure_create(commands)
    _configure_list(commands)
    _configure_describe(commands)
    _configure_alter(commands)
    _configure_delete(commands)
    topic_offsets.configure(commands)


def run(args: argparse.Namespace) -> int:
    code: int = args.act(args)
    return code


# --- create --------------------------------------------------------------------------


def _configure_create(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "create",
        _create,
        "make topics",
        """\
  rafka topic create orders
  rafka topic create orders payments -p 12 -c cleanup.policy=compact
  rafka topic create orders --if-not-exists
  rafka topic create orders -p 3 -c retention.ms=oops --validate-only
""",
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument(
        "-p", "--partitions", type=int, default=-1, metavar="N", help="how many (else the broker's default)"
    )
    parser.add_argument(
        "-r",
        "--replication-factor",
        type=int,
        default=-1,
        metavar="N",
        help="copies of each partition (else the broker's default)",
    )
    parser.add_argument(
        "-c", "--config", action="append", default=[], metavar="NAME=VALUE", help="a setting of the topic"
    )
    parser.add_argument("--if-not-exists", action="store_true", help="be content with a topic that is there")
    parser.add_argument(
        "--validate-only", action="store_true", help="ask whether it could be made; make nothing"
    )
    add_json(parser)
    add_bootstrap(parser)


def _create(args: argparse.Namespace) -> int:
    configs = dict(checked(key_value, one) for one in args.config)
    topics = [
        NewTopic(
            name=name,
            partitions=args.partitions,
            replication_factor=args.replication_factor,
            configs=configs,
        )
        for name in args.topics
    ]

    async def create(client: Client) -> int:
        answers = await client.admin.create_topics(topics, validate_only=args.validate_only)
        content_with = ErrorCode.TOPIC_ALREADY_EXISTS if args.if_not_exists else None
        outcomes = [_forgive(one, content_with) for one in answers]
        done = "could be created" if args.validate_only else "created"
        return _tell(args, outcomes, done, "there already")

    return run_connected(args, create)


# --- list ----------------------------------------------------------------------------


def _configure_list(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "list",
        _list,
        "list topics: a table on a terminal, names alone elsewhere",
        """\
  rafka topic list
  rafka topic list --internal                   the broker's own, too
  rafka topic list | xargs rafka topic describe
""",
    )
    parser.add_argument("--internal", action="store_true", help="the broker's own topics, too")
    add_json(parser)
    add_bootstrap(parser)


def _list(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        topics = [one for one in await client.admin.list_topics() if args.internal or not one.internal]
        if args.json:
            print_json([_summary(one) for one in topics])
        elif sys.stdout.isatty():
            rows = [[one.name, len(one.partitions), _replicas(one)] for one in topics]
            print_table(["TOPIC", "PARTITIONS", "REPLICAS"], rows)
        else:
            for one in topics:
                print(one.name)
        return DONE

    return run_connected(args, show)


def _summary(info: TopicInfo) -> dict[str, object]:
    return {
        "name": info.name,
        "topic_id": topic_id_text(info.topic_id),
        "internal": info.internal,
        "partitions": len(info.partitions),
        "replication_factor": _replicas(info),
    }


def _replicas(info: TopicInfo) -> int:
    return max((len(one.replicas) for one in info.partitions), default=0)


# --- describe ------------------------------------------------------------------------


def _configure_describe(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "describe",
        _describe,
        "show partitions, leaders, replicas, offsets and the configs that were set",
        """\
  rafka topic describe                          all of them
  rafka topic describe orders
  rafka topic describe orders --all-configs     with the defaults
  rafka topic describe orders --json | jq '.[0].partitions[].leader'
""",
    )
    parser.add_argument("topics", nargs="*", metavar="TOPIC")
    parser.add_argument("--all-configs", action="store_true", help="those at their defaults, too")
    add_json(parser)
    add_bootstrap(parser)


def _describe(args: argparse.Namespace) -> int:
    async def show(client: Client) -> int:
        infos = (
            [await client.admin.describe_topic(name) for name in args.topics]
            if args.topics
            else [one for one in await client.admin.list_topics() if not one.internal]
        )
        described = [await _describe_one(client, info, args.all_configs) for info in infos]
        if args.json:
            print_json(described)
            return DONE
        for number, one in enumerate(described):
            if number:
                print()
            _print_described(one)
        return DONE

    return run_connected(args, show)


async def _describe_one(client: Client, info: TopicInfo, all_configs: bool) -> dict[str, object]:
    led = [TopicPartition(info.name, one.partition) for one in info.partitions if one.leader is not None]
    starts = await client.admin.list_offsets(dict.fromkeys(led, EARLIEST))
    ends = await client.admin.list_offsets(dict.fromkeys(led, LATEST))
    configs = await client.admin.topic_configs(info.name)
    partitions = []
    for one in info.partitions:
        target = TopicPartition(info.name, one.partition)
        partitions.append(
            {
                "partition": one.partition,
                "leader": one.leader,
                "leader_epoch": one.leader_epoch,
                "replicas": list(one.replicas),
                "isr": list(one.isr),
                "start_offset": starts[target].offset if target in starts else None,
                "end_offset": ends[target].offset if target in ends else None,
            }
        )
    return {
        **_summary(info),
        "partitions": partitions,
        "configs": {
            name: config.value for name, config in configs.items() if all_configs or not config.is_default
        },
    }


def _print_described(one: dict[str, object]) -> None:
    """The line that Kafka's own tool begins with, and a table."""
    partitions, configs = one["partitions"], one["configs"]
    assert isinstance(partitions, list)
    assert isinstance(configs, dict)
    shown = ",".join(f"{name}={'(secret)' if value is None else value}" for name, value in configs.items())
    print(
        f"Topic: {one['name']}  TopicId: {one['topic_id']}  PartitionCount: {len(partitions)}  "
        f"ReplicationFactor: {one['replication_factor']}  Configs: {shown or '-'}"
    )
    print_table(
        ["PARTITION", "LEADER", "REPLICAS", "ISR", "START-OFFSET", "END-OFFSET"],
        [
            [
                entry["partition"],
                "none" if entry["leader"] is None else entry["leader"],
                ",".join(map(str, entry["replicas"])),
                ",".join(map(str, entry["isr"])),
                entry["start_offset"],
                entry["end_offset"],
            ]
            for entry in partitions
        ],
    )


# --- alter ---------------------------------------------------------------------------


def _configure_alter(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "alter",
        _alter,
        "add partitions to a topic, or change its configs",
        """\
  rafka topic alter orders --partitions 6
  rafka topic alter orders -c retention.ms=3600000 -c cleanup.policy=compact,delete
  rafka topic alter orders --delete-config retention.ms     back to the default
""",
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument(
        "-p", "--partitions", type=int, metavar="N", help="have so many; they never become fewer"
    )
    parser.add_argument(
        "-c", "--config", action="append", default=[], metavar="NAME=VALUE", help="set a config"
    )
    parser.add_argument(
        "--delete-config",
        action="append",
        default=[],
        metavar="NAME",
        help="take a config back to its default",
    )
    parser.add_argument(
        "--validate-only", action="store_true", help="ask whether it could be done; change nothing"
    )
    add_bootstrap(parser)


def _alter(args: argparse.Namespace) -> int:
    if args.partitions is None and not args.config and not args.delete_config:
        raise CommandError("nothing to alter: give --partitions, --config or --delete-config", ASKED_WRONGLY)
    configs = dict(checked(key_value, one) for one in args.config)

    async def alter(client: Client) -> int:
        done = "could be altered" if args.validate_only else "altered"
        if configs or args.delete_config:
            await client.admin.alter_topic_configs(
                args.topic, configs, args.delete_config, validate_only=args.validate_only
            )
        if args.partitions is not None:
            await client.admin.create_partitions(
                args.topic, args.partitions, validate_only=args.validate_only
            )
        print(f"{args.topic}: {done}")
        return DONE

    return run_connected(args, alter)


# --- delete --------------------------------------------------------------------------


def _configure_delete(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = add_command(
        commands,
        "delete",
        _delete,
        "delete topics with all their records; asks first on a terminal",
        """\
  rafka topic delete orders
  rafka topic delete orders payments --yes --if-exists
""",
    )
    parser.add_argument("topics", nargs="+", metavar="TOPIC")
    parser.add_argument("--if-exists", action="store_true", help="be content where there is none")
    parser.add_argument("-y", "--yes", action="store_true", help="do not ask")
    add_json(parser)
    add_bootstrap(parser)


def _delete(args: argparse.Namespace) -> int:
    if not args.yes and somebody_can_say_no():
        confirm(f"Delete {', '.join(args.topics)} and all records?")

    async def delete(client: Client) -> int:
        content_with = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if args.if_exists else None
        outcomes = [_forgive(one, content_with) for one in await client.admin.delete_topics(args.topics)]
        return _tell(args, outcomes, "deleted", "not there")

    return run_connected(args, delete)


# --- shared ----------------------------------------------------------------------------


def _forgive(outcome: Outcome, code: ErrorCode | None) -> Outcome | None:
    """None: that is what was wanted anyway."""
    return None if outcome.error is not None and outcome.error.code is code else outcome


def _tell(args: argparse.Namespace, outcomes: Sequence[Outcome | None], done: str, otherwise: str) -> int:
    """A line for each topic, in the order given, errors to stderr. 1 where there was one."""
    code = DONE
    shown = []
    for name, outcome in zip(args.topics, _in_order(args.topics, outcomes), strict=True):
        error = None if outcome is None else outcome.error
        if args.json:
            shown.append(
                {"topic": name, "done": outcome is not None and error is None, "error": _words(error)}
            )
        elif error is None:
            print(plain(f"{name}: {otherwise if outcome is None else done}"))
        if error is not None:
            code = FAILED
            if not args.json:
                complain("rafka topic", _advice(error), FAILED)
    if args.json:
        print_json(shown)
    return code


def _in_order(names: Iterable[str], outcomes: Sequence[Outcome | None]) -> list[Outcome | None]:
    """Brokers answer in an order of their own."""
    by_name = {outcome.subject: outcome for outcome in outcomes if outcome is not None}
    return [by_name.get(name) for name in names]


def _words(error: BrokerRefused | None) -> str | None:
    return None if error is None else str(error)


def _advice(error: BrokerRefused) -> str:
    if error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
        return f"{error} (--if-not-exists is content with that)"
    if isinstance(error, UnknownTopic):
        return f"{error.subject} does not exist (--if-exists is content with that)"
    return str(error)

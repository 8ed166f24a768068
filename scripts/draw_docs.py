#!/usr/bin/env python
"""Draws the reference pages from the tables in the code, so that they cannot say anything else.

    python scripts/draw_docs.py            write docs/reference/*.md
    python scripts/draw_docs.py --check    exit 1 and name the pages that are out of date

To add a page, write a function that returns its text and put it into `PAGES`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

REFERENCE = ROOT / "docs" / "reference"
DRAWN = "<!-- Drawn by scripts/draw_docs.py. Change the code, then draw it again. -->"


def configuration() -> str:
    from rafka.config import SECTIONS, Config
    from rafka.config.kafka_names import REFUSED
    from rafka.config.setting import settings_of
    from rafka.machines.config_other_tables import GROUP_TABLE, METRICS_TABLE
    from rafka.machines.config_topic_table import TABLE

    plain = Config()
    parts = [_SETTINGS]
    for section in SECTIONS:
        part = getattr(plain, section)
        parts.append(f"### {_TITLES[section]}\n")
        rows = []
        for field, about in settings_of(type(part)):
            also = [*([about.kafka] if about.kafka else []), *about.aliases]
            doc = about.doc + (f" Also: {', '.join(code(name) for name in also)}." if also else "")
            rows.append((code(about.key), _default(getattr(part, field.name)), _bounds(about), doc))
        parts.append(table(("setting", "default", "allowed", "what it is"), rows))
    parts.append(
        "## Not passed over\n\n"
        "These settings of Kafka's end the start, because to go on without them would be worse:\n"
    )
    parts.append(table(("setting", "why"), [(code(key), why) for key, why in REFUSED.items()]))
    parts.append(_TOPICS)
    parts.append(
        table(
            ("config", "default", "falls back on", "what it is"),
            [
                (code(row.name), _default(row.default), code(row.broker) if row.broker else "", row.doc)
                for row in TABLE.values()
            ],
        )
    )
    parts.append("## Groups\n")
    parts.append(
        table(
            ("config", "default", "bounds", "what it is"),
            [
                (code(r.name), _default(r.default), _group_bounds(r.lowest, r.highest), r.doc)
                for r in GROUP_TABLE.values()
            ],
        )
    )
    parts.append("## Client metrics\n")
    parts.append(
        table(
            ("config", "default", "what it is"),
            [(code(r.name), _default(r.default), r.doc) for r in METRICS_TABLE.values()],
        )
    )
    return page("Configuration", parts)


def command_line() -> str:
    from importlib.util import find_spec

    from rafka.cli import COMMANDS, parser_of

    parts = [table(("command", ""), [(code(f"rafka {name}"), line) for name, line in COMMANDS.items()])]
    for name in COMMANDS:
        if find_spec(f"rafka.cli.{name}") is not None:
            parts += _command(parser_of(name), 2)
    parts.append(_EXIT_CODES)
    return page("Command line", parts)


def errors() -> str:
    from rafka.errors import ErrorCode

    intro = (
        "Kafka's error codes, as rafka answers them. After a retriable one the client may try the same again."
    )
    rows = [
        (str(int(error)), code(error.name), "yes" if error.retriable else "", error.meaning)
        for error in sorted(ErrorCode, key=int)
    ]
    return page("Error codes", [intro, table(("code", "name", "retriable", "meaning"), rows)])


def apis() -> str:
    """The table of routes, which ApiVersions is read off as well."""
    from rafka.gateway.routes import ROUTES

    rows = []
    for key, route in sorted(ROUTES.items()):
        api = route.api
        read, listed = f"{api.versions[0]}-{api.versions[-1]}", f"{api.listed[0]}-{api.listed[-1]}"
        listed = f"{listed}, to rafka's client" if route.own else listed
        flexible = f"from {api.flexible}" if api.flexible is not None else "no"
        answered = "gateway" if route.local is not None else "broker"
        rows.append((str(key), api.name, read, listed, flexible, answered))
    return page(
        "APIs",
        [
            "What rafka serves, in the versions that it serves. ApiVersions tells clients the same table:"
            " what is not in it is not served, and closes the connection as it does in Kafka. Versions that"
            " are listed and not served are those that old clients look for, as in Kafka 4.",
            table(("Key", "API", "Served", "Listed", "Flexible", "Answered by"), rows),
        ],
    )


def spans() -> str:
    """The rule by which spans are named, played through for all routes."""
    from rafka.gateway.routes import ROUTES
    from rafka.observe.names import BROKER, FIND_COORDINATOR, GATEWAY, REBALANCE_COMPLETE, span_name

    rows = [
        (route.api.name, code(span_name(GATEWAY, route.op)), code(span_name(BROKER, route.op)))
        for _, route in sorted(ROUTES.items())
        if route.op is not None
    ]
    rows.append(("FindCoordinator", code(FIND_COORDINATOR), ""))
    return page(
        "Spans",
        [
            _SPANS,
            table(("request", "in the gateway", "in the broker"), rows),
            _REBALANCE.format(REBALANCE_COMPLETE),
        ],
    )


def group_states() -> str:
    """The table that the machine itself is held to, and what may begin a rebalance."""
    from rafka.machines.groups.events import Trigger
    from rafka.machines.groups.model import TRANSITIONS

    steps = [(old, new, why) for old, following in TRANSITIONS.items() for new, why in following.items()]
    diagram = [f"    {old.shown} --> {new.shown}" for old, new, _ in steps]
    return page(
        "States of a group",
        [
            _GROUP_STATES,
            "\n".join(["```mermaid", "stateDiagram-v2", f"    [*] --> {steps[0][0].shown}", *diagram, "```"]),
            table(
                ("from", "to", "when"), [(code(old.shown), code(new.shown), why) for old, new, why in steps]
            ),
            _TRIGGERS,
            "\n".join(f"- {trigger.value}" for trigger in Trigger),
        ],
    )


PAGES: Mapping[str, Callable[[], str]] = {
    "apis.md": apis,
    "configuration.md": configuration,
    "cli.md": command_line,
    "errors.md": errors,
    "group-states.md": group_states,
    "spans.md": spans,
}


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Draw the reference pages from the code.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a page is out of date")
    args = parser.parse_args(argv)
    stale = [name for name, draw in PAGES.items() if not _is(REFERENCE / name, draw())]
    if args.check:
        for name in stale:
            print(f"docs/reference/{name} is out of date: run scripts/draw_docs.py", file=sys.stderr)
        return 1 if stale else 0
    REFERENCE.mkdir(parents=True, exist_ok=True)
    for name in stale:
        (REFERENCE / name).write_text(PAGES[name](), encoding="utf-8")
        print(f"drew docs/reference/{name}")
    return 0


# --- Markdown ----------------------------------------------------------------------------


def page(title: str, parts: Iterable[str]) -> str:
    return "\n\n".join([f"# {title}", DRAWN, *(part.strip("\n") for part in parts)]) + "\n"


def table(headers: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headers, ["---"] * len(headers), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    return f"`{text}`"


# --- what stands between the tables --------------------------------------------------------

_SETTINGS = """\
Settings are heard in this order of weight: flags (`--set KEY=VALUE` and those with a name of their own),
`RAFKA_*` variables, `KAFKA_*` variables, the file of `-c`, defaults. `rafka serve --print-config` tells what
counts and who said so.

- The variable of `log.segment.bytes` is `RAFKA_LOG_SEGMENT_BYTES`: dots become `_`, `_` becomes `__`, and
  `-` becomes `___`.
- A file is TOML where its name ends in `.toml`, with keys as they are here or in tables; any other is read
  as a `server.properties`.
- A key that nobody knows is an error. A key that Kafka knows and rafka has no use for is passed over with a
  warning, so that files made for Kafka can be used as they are.
- `KAFKA_ADVERTISED_LISTENERS` without `KAFKA_LISTENERS` listens on every interface, as Kafka's image does.
- `RAFKA_KAFKA_CLIENT_HOST` and `RAFKA_KAFKA_CLIENT_PORT` are the two halves of `advertise`.
- Records are kept under `$XDG_STATE_HOME/rafka`, else `~/.local/state/rafka`, unless `storage` says
  otherwise.

## Settings of the broker
"""

_TOPICS = """\
## Topics

What a topic may have of its own. What it has not it takes from the setting of the broker that is named here;
`log.retention.ms`, `log.roll.ms` and `log.roll.jitter.ms` are also known in greater units.
"""

_GROUP_STATES = """\
A consumer group of the classic protocol is always in one of these states, by Kafka's names for them. From
each it goes on only as the table says; anything else would be a mistake of rafka's own, and is refused.
After a restart a group begins as `Stable` with the members of its last stable generation, or as `Empty`.
"""

_TRIGGERS = """\
## Why a rebalance begins

What the history of a group gives as the trigger is one of these:
"""

_EXIT_CODES = """\
## Exit codes

0 done, 1 failed, 2 asked for wrongly, 130 ended by Ctrl-C, 141 nobody reads the output any more.
"""

_SPANS = """\
What rafka makes spans of, where a tracer is configured: see [how](../howto/trace.md). The gateway's begins
when a request has been read and ends when its reply is there; the broker's is its child. Both include the
waiting: of a JoinGroup for the others, of a Fetch for records, of a Produce for the disk.

| attribute | |
|---|---|
| `messaging.system` | `kafka` |
| `messaging.client.id` | what the client calls itself |
| `client.address` | where it comes from |
| `messaging.consumer.group.name` | of requests about one group |
| `error.type` | Kafka's error code by name, if the whole request has one; `Cancelled` if the client went |

A span has the status of an error only where rafka itself made a mistake.
"""

_REBALANCE = """\
`{}` has the length of a rebalance, from its beginning until the generation
formed. Its attributes are `group`, `generation_id`, `leader_id`, `members` (how many there are in it), `took`
(in seconds), `trigger` and `outcome` (as `rafka group history` tells them).
"""

_TITLES = {
    "broker": "The broker",
    "network": "Network",
    "topics": "New topics",
    "log": "Logs",
    "cleaner": "Compaction",
    "producers": "Producers",
    "fetch": "Fetching",
    "groups": "Consumer groups",
    "transactions": "Transactions",
    "link": "Gateways in processes of their own",
    "storage": "Storage",
    "logging": "The broker's own log",
}


def _command(parser: argparse.ArgumentParser, depth: int) -> Iterator[str]:
    """A command, its options, and its own commands. Argparse's own text differs from Python to Python."""
    yield f"{'#' * depth} {parser.prog}"
    if parser.description:
        yield parser.description
    rows = []
    below: list[argparse.ArgumentParser] = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below += dict.fromkeys(action.choices.values())
        elif not isinstance(action, argparse._HelpAction):
            rows.append((_invocation(action), (action.help or "") % {**vars(action), "prog": parser.prog}))
    if rows:
        yield table(("option", "what it does"), rows)
    if parser.epilog:
        yield f"```text\n{parser.epilog.rstrip()}\n```"
    for command in below:
        yield from _command(command, depth + 1)


def _invocation(action: argparse.Action) -> str:
    names = ", ".join(code(name) for name in action.option_strings)
    value = action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper())
    if not names:
        return code(str(value))
    return names if action.nargs == 0 else f"{names} {code(str(value))}"


def _default(value: object) -> str:
    from rafka.config.places import Place
    from rafka.config.setting import as_text

    if isinstance(value, Place):
        return "see above"
    if value is None or value == () or value == {}:
        return ""
    return code(as_text(value))


def _bounds(about: object) -> str:
    from rafka.config.setting import INT_MAX, LONG_MAX, Setting

    assert isinstance(about, Setting)
    if about.one_of:
        return ", ".join(code(word) for word in about.one_of)
    least = "" if about.at_least is None else f"at least {about.at_least}"
    most = "" if about.at_most in (None, INT_MAX, LONG_MAX) else f"at most {about.at_most}"
    return ", ".join(part for part in (least, most, about.unit or "") if part)


def _group_bounds(lowest: tuple[str, int] | None, highest: tuple[str, int] | None) -> str:
    low, high = (str(bound[1]) if bound else "" for bound in (lowest, highest))
    return f"{low} to {high}" if low and high else f"at most {high}" if high else ""


def _is(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


if __name__ == "__main__":
    sys.exit(main())

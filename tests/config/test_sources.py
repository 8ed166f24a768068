"""Files and variables, read as their writers meant them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rafka.config import ConfigError, load
from rafka.config.places import default_place, parse_place
from rafka.config.sources import env_name, from_file, key_of, properties


@pytest.mark.parametrize("key", ["num.partitions", "a_b.c", "a-b.c", "log.retention.ms"])
def test_the_name_of_a_variable_leads_back_to_its_key(key: str) -> None:
    assert key_of(env_name(key).removeprefix("RAFKA_")) == key


def test_a_properties_file_is_read_as_java_reads_it() -> None:
    text = (
        "# a comment\n! another\n\n"
        "plain=1\n  spaced  =  two words  \ncolon: 3\nspace 4\n"
        "long=a,\\\n    b\npath=C\\:\\\\dir\nsnow=\\u2603\nempty=\nkey\\ with\\=signs=5\nplain=6\n"
    )

    assert dict(properties(text)) == {
        "plain": "6",
        "spaced": "two words",
        "colon": "3",
        "space": "4",
        "long": "a,b",
        "path": "C:\\dir",
        "snow": "☃",
        "empty": "",
        "key with=signs": "5",
    }


def test_a_toml_file_may_have_tables_or_dotted_keys(tmp_path: Path) -> None:
    file = tmp_path / "rafka.toml"
    file.write_text(
        "num.partitions = 3\nauto.create.topics.enable = false\n"
        'listen = ["127.0.0.1:1", "[::1]:2"]\n'
        '"storage" = "memory:"\n"storage.reserve.bytes" = 5\n'
        "[log]\nsegment.bytes = 2000000\ncleanup.policy = ['compact', 'delete']\n"
        "[log.cleaner]\nmin.cleanable.ratio = 0.25\n"
    )

    config = load(file=str(file))

    assert config.topics.partitions == 3
    assert not config.topics.auto_create
    assert [one.port for one in config.network.listen] == [1, 2]
    assert config.storage.place.in_memory
    assert config.storage.reserve_bytes == 5
    assert config.log.segment_bytes == 2_000_000
    assert config.log.cleanup_policy == ("compact", "delete")
    assert config.cleaner.min_cleanable_ratio == 0.25


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("num.partitions = true\n", "must be a whole number"),
        ("num.partitions = 1.5\n", "must be a whole number"),
        ("broker.rack = 1\n", "must be text"),
        ("auto.create.topics.enable = 1\n", "must be true or false"),
        ("log.cleanup.policy = [1]\n", "must be delete or compact"),
        ("controller.listener.names = 1\n", "must be a list"),
        ("num.partitions\n", "is not TOML"),
        ("max.connections = 1\nmax.connections.per.ip = 2\n", "put both in quotes"),
    ],
)
def test_a_toml_file_with_a_mistake_is_refused(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "rafka.toml"
    file.write_text(text)

    with pytest.raises(ConfigError, match=words):
        load(file=str(file))


def test_a_file_that_is_not_there_or_not_text_is_named(tmp_path: Path) -> None:
    binary = tmp_path / "server.properties"
    binary.write_bytes(b"\xff\xfe")

    with pytest.raises(ConfigError, match=r"nowhere\.toml: cannot be read: No such file"):
        list(from_file(str(tmp_path / "nowhere.toml")))
    with pytest.raises(ConfigError, match="is not UTF-8 text: byte 0"):
        list(from_file(str(binary)))


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("memory:", None),
        ("file:/srv/d", "/srv/d"),
        ("file:///srv/d", "/srv/d"),
        ("/srv/d", "/srv/d"),
        ("~/d", str(Path.home() / "d")),
        ("d", str(Path.cwd() / "d")),
        ("./a:b", str(Path.cwd() / "a:b")),
    ],
)
def test_a_place_is_a_url_or_a_directory(text: str, path: str | None) -> None:
    assert parse_place(text).path == path


@pytest.mark.parametrize("text", ["", "file:", "s3://bucket", "redis://h", "memory:x", "/a,/b"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"must|one directory"):
        parse_place(text)


def test_records_are_kept_at_home_unless_said_otherwise() -> None:
    assert default_place({"XDG_STATE_HOME": "/state"}).path == "/state/rafka"
    assert default_place({}).path == str(Path.home() / ".local" / "state" / "rafka")

"""The file of servers that hosts share."""

import html
import json
import re
import time
from urllib.parse import quote, quote_plus

import pytest

from narratoria.errors import ToolValidationError
from narratoria.kinds.foreign_names import our_name, our_names
from narratoria.kinds.load import load_tool
from narratoria.kinds.mcp.server_file import ServersInvalid, read_server_file, servers_from_data
from narratoria.kinds.redaction import Redaction
from narratoria.run.registry import ToolRegistry
from narratoria.tools.tool import NAME_PATTERN, Tool


def one(entry, **options):
    found = servers_from_data({"mcpServers": {"x": entry}}, **options)
    assert not found.problems, found.problems
    return found.servers[0]


def problem(entry, **options):
    return servers_from_data({"mcpServers": {"x": entry}}, **options).problems["x"]


def test_comments_and_last_commas_are_read_over(tmp_path):
    path = tmp_path / "mcp.json"
    path.write_text(
        """\ufeff// of an editor
{
  "servers": {
    /* two lines,
       } */
    "time": {"command": "uvx", "args": ["http://x//y", "/* kept */", "a\\"//b",],}, // the last
  },
}
"""
    )
    (server,) = read_server_file(path).servers
    assert server.args == ("http://x//y", "/* kept */", 'a"//b')


@pytest.mark.parametrize("text", ['{"a": /* {} }', '{"a": "b', '{"a": 1,, }', '{"a": 1 // }'], ids=str)
def test_what_is_no_json_even_without_comments_is_refused(tmp_path, text):
    path = tmp_path / "mcp.json"
    path.write_text(text)
    with pytest.raises(ServersInvalid, match="not JSON"):
        read_server_file(path)


@pytest.mark.parametrize(
    "text", ["/*" * 200_000, '\\"' * 200_000, "," * 200_000 + " " * 200_000], ids=["a", "b", "c"]
)
def test_a_hostile_file_is_refused_at_once(tmp_path, text):
    path = tmp_path / "mcp.json"
    path.write_text(text)
    begun = time.monotonic()
    with pytest.raises(ServersInvalid):
        read_server_file(path)
    assert time.monotonic() - begun < 5


def test_a_command_that_is_a_list_and_other_hosts_names_are_understood():
    found = servers_from_data(
        {"mcp": {"x": {"type": "local", "command": ["npx", "-y", "thing"], "environment": {"A": "1"}}}}
    )
    assert found.servers[0].command == "npx"
    assert found.servers[0].args == ("-y", "thing")
    assert found.servers[0].env == {"A": "1"}
    assert servers_from_data({"context_servers": {"y": {"command": "z"}}}).servers[0].name == "y"


def test_a_program_with_arguments_variables_and_a_folder(tmp_path):
    server = one(
        {
            "command": "${BIN:-uvx}",
            "args": ["--root", "${ROOT}"],
            "env": {"KEY": "${SECRET:-}"},
            "cwd": str(tmp_path),
        },
        env={"ROOT": "/srv"},
    )
    assert (server.command, server.args, server.env) == ("uvx", ("--root", "/srv"), {"KEY": ""})
    assert server.cwd == tmp_path
    assert server.transport == "stdio"


def test_an_address_with_headers():
    server = one({"url": "https://${HOST}/mcp", "headers": {"Authorization": "Bearer ${TOKEN}"}}, env={
        "HOST": "mcp.example.org", "TOKEN": "t0p-secret"
    })  # fmt: skip
    assert server.url == "https://mcp.example.org/mcp"
    assert server.headers == {"Authorization": "Bearer t0p-secret"}
    assert "t0p-secret" not in repr(server)
    assert server.redaction.text("I got t0p-secret") == "I got ***"


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "streamable-http", "url": "http://h/mcp", "timeout": 600, "alwaysAllow": ["a"]},
        {"httpUrl": "http://h/mcp", "trust": True},
        {"serverUrl": "http://h/mcp"},
        {"type": "sse", "url": "http://h/sse"},
        {"command": "npx", "args": ["-y", "x"], "type": "stdio", "autoApprove": [], "disabled": False},
    ],
)
def test_entries_of_other_hosts_are_read_unchanged(entry):
    assert one(entry)


@pytest.mark.parametrize("key", ["mcpServers", "servers", None])
def test_the_keys_around_the_servers(key):
    servers = {"a": {"command": "a"}, "b": {"command": "b", "disabled": True}}
    found = servers_from_data({key: servers, "inputs": []} if key else servers)
    assert [server.name for server in found.servers] == ["a"]


def test_a_variable_that_is_not_set_is_named_and_hides_no_other_server():
    found = servers_from_data(
        {"a": {"command": "a", "env": {"T": "${NO_SUCH}"}}, "b": {"command": "b"}}, env={}
    )
    assert found.problems == {
        "a": "mcpServers: a: key 'env.T': NO_SUCH is not set; set it where narratoria is started"
    }
    assert [server.name for server in found.servers] == ["b"]


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ({}, "key 'command': expected a text"),
        ({"command": "x", "args": "y"}, "key 'args': expected a list of texts"),
        ({"url": "ftp://h"}, "begins with http://"),
        ({"type": "pigeon", "command": "x"}, "'pigeon' is not a transport"),
        ({"command": "x", "env": {"A": ["b"]}}, "key 'env.A': expected a text"),
        ({"command": "x", "env": {"A": "${input:key}"}}, "asks a person"),
        ({"command": "x", "narratoria": {"tiemout": 3}}, "key 'narratoria': tiemout"),
        ({"command": "x", "narratoria": {"timeout": 0}}, "more than 0 seconds"),
    ],
)
def test_a_server_that_cannot_be_used_says_which_key(entry, said):
    assert said in problem(entry, env={})


def test_a_file_that_is_no_file_of_servers(tmp_path):
    path = tmp_path / "servers.json"
    for content in ("[", "[]", '{"mcpServers": 3}', '{"mcpServers": {"a": 1}}'):
        path.write_text(content)
        with pytest.raises(ServersInvalid, match=r"servers\.json(:1)?: "):
            read_server_file(path)
    with pytest.raises(ServersInvalid, match="cannot be read"):
        read_server_file(tmp_path / "missing.json")


def test_secrets_in_arguments_and_variables_are_known_and_folders_are_not():
    server = one(
        {
            "command": "x",
            "args": ["--api-key", "k-123456", "--token=t-123456", "${GH_TOKEN}", "/data/folder"],
            "env": {"DB_PASSWORD": "p-123456", "DATA": "/data/folder"},
        },
        env={"GH_TOKEN": "g-123456"},
    )
    assert server.where == "x --api-key *** --token=*** *** /data/folder"
    assert server.redaction.data({"a": ["p-123456", "/data/folder"]}) == {"a": ["***", "/data/folder"]}
    assert Redaction(["abc"]).text("abc") == "abc"  # too short to be one


@pytest.mark.parametrize(
    "arguments",
    [
        ["--header", "Authorization: Bearer s3cret-77"],
        ["--header=Authorization:Bearer s3cret-77"],
        ["-H", "X-Api-Key: s3cret-77"],
        ["postgres://me:s3cret-77@db/x"],
        ["https://x.example/mcp?api_key=s3cret-77&page=1"],
        ["--github-pat", "s3cret-77"],
    ],
)
def test_secrets_in_headers_and_addresses_among_the_arguments_are_not_shown(arguments):
    server = one({"command": "x", "args": arguments})
    assert "s3cret-77" not in server.where and "***" in server.where


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GITHUB_PAT", "s3cret-77"),
        ("DB_PWD", "s3cret-77"),
        ("DATABASE_URL", "postgres://me:s3cret-77@db/x"),
        ("AUTH", "Basic s3cret-77"),
    ],
)
def test_secrets_in_variables_are_known(name, value):
    assert one({"command": "x", "env": {name: value}}).redaction.text("s3cret-77") == "***"


def test_an_entry_that_is_no_server_leaves_out_only_itself():
    found = servers_from_data({"mcpServers": {"a": {"command": "x"}, "b": 5}})
    assert [one.name for one in found.servers] == ["a"]
    assert re.search(r"'b': expected a server, .* got 5", found.problems["b"])


def test_what_is_no_secret_stays():
    server = one(
        {"command": "x", "env": {"PATH": "/usr/local/bin", "PWD": "/srv/files", "SPATIAL": "yes-please"}}
    )
    assert (
        server.redaction.text("/usr/local/bin /srv/files yes-please")
        == "/usr/local/bin /srv/files yes-please"
    )


def test_a_secret_is_found_as_json_and_as_an_address_write_it():
    secret = 'a/b c+d"é\\f'
    redaction = Redaction([secret])
    for text in (
        json.dumps({"a": secret}),
        json.dumps({"a": secret}, ensure_ascii=False),
        f"x?k={quote(secret, safe='')}",
        f"x?k={quote(secret).lower()}",
        f"x?k={quote_plus(secret)}",
    ):
        assert "a/b" not in redaction.text(text) and "%22" not in redaction.text(text), text
        assert "***" in redaction.text(text) and b"***" in redaction.content(text.encode())


# --- names ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("original", "ours"),
    [
        ("get-user", "get-user"),
        ("getUser", "getuser"),
        ("files/read", "files_read"),
        ("a.b.c", "a_b_c"),
        ("größe", "gr__e"),
        ("x" * 65, "x" * 55 + "_" + "635361c4"),
    ],
)
def test_a_name_becomes_ours_the_same_way_everywhere(original, ours):
    assert our_name(original)[:55] == ours[:55]
    assert NAME_PATTERN.fullmatch(our_name(original))
    assert our_name(original) == our_name(original)


def test_of_names_that_collide_the_unchanged_one_keeps_its_name():
    for order in (["getUser", "getuser", "GETUSER"], ["GETUSER", "getUser", "getuser"]):
        names = our_names(order)
        assert names["getuser"] == "getuser"
        assert len(set(names.values())) == 3
        assert names["getUser"].startswith("getuser_")
    assert our_names(["getUser", "GETUSER"])["getUser"] == our_names(["getUser", "getuser"])["getUser"]


def test_a_name_with_a_dot_and_a_long_description_are_for_tools_of_servers_only():
    async def handler(params, *, context):
        return None

    with pytest.raises(ToolValidationError, match=r"tool name 'a\.b'"):
        Tool("a.b", "x", handler, parameters={"type": "object"})
    with pytest.raises(ToolValidationError, match="1-200 characters"):
        Tool("a", "x" * 201, handler, parameters={"type": "object"})


# --- a manifest of the kind mcp ---------------------------------------------------------------------------------


async def test_a_manifest_may_name_a_tool_of_a_server(place):
    manifest = {
        "name": "sum",
        "description": "Adds two numbers.",
        "kind": "mcp",
        "settings": {"server": place.entry(), "tool": "add"},
        "timeout": 60,
    }
    path = place.folder / "sum.tool.json"
    path.write_text(json.dumps(manifest))
    registry = ToolRegistry([load_tool(path)])
    assert (await registry.execute("sum", {"a": 20, "b": 22})).value == {"total": 42}


def test_a_manifest_of_the_kind_mcp_needs_a_server_and_a_tool(tmp_path):
    path = tmp_path / "sum.tool.json"
    path.write_text(
        json.dumps({"name": "sum", "description": "x", "kind": "mcp", "settings": {"server": {}}})
    )
    with pytest.raises(ToolValidationError, match=r'settings: expected \{"server"'):
        load_tool(path)


def test_a_secret_is_found_in_every_way_it_is_commonly_written() -> None:
    secret = "pa\"ss\\wörd/& 'one"
    redaction = Redaction([secret])
    written = [repr(secret), json.dumps(json.dumps(secret)), html.escape(secret), quote(secret)]
    assert [one for one in written if "ss" in redaction.text(one)] == []

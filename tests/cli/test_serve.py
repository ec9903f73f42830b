"""Commands as tools of agents: what a call may give, and one session over stdio."""

import sys

import pytest

from symbolic_cost.cli.serve import run_call, tools, words
from symbolic_cost.errors import InputError


def test_tools_are_the_commands_that_write_nothing():
    offered = tools()
    assert {"memory", "time", "search", "formula", "count", "check"} <= set(offered)
    assert not {"serve", "calibrate"} & set(offered)
    taken = offered["memory"][1]
    assert taken["required"] == ["model"]
    assert taken["properties"]["set"]["type"] == "array"
    assert taken["properties"]["global-batch"]["type"] == "integer"
    for _, schema in offered.values():
        assert not {"o", "format", "plugin", "file"} & set(schema["properties"])


def test_a_call_is_a_command_line(tmp_path):
    command, _ = tools()["memory"]
    given = {"model": "gpt2", "set": ["tp=2", "b=1"], "strategy": "tp", "regather": False}
    line = words(command, given, tmp_path)
    assert sorted(line) == sorted(
        ["--set=tp=2", "--set=b=1", "--strategy=tp", "--no-regather", "--format=json", "--", "gpt2"]
    )
    assert line[-2:] == ["--", "gpt2"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"model": "/etc/passwd"}, "below the working folder"),
        ({"model": "../x.json"}, "below the working folder"),
        ({"model": "~/x.json"}, "below the working folder"),
        ({"model": "gpt2", "system": "a/../../x.toml"}, "below the working folder"),
        ({"model": "gpt2", "set": ["l=/etc/passwd"]}, "below the working folder"),
        ({"model": "gpt2", "output": "x"}, "unknown argument 'output'"),
        ({"model": "gpt2", "plugin": "x.py"}, "unknown argument 'plugin'"),
    ],
)
def test_refused(given, said, tmp_path):
    with pytest.raises(InputError, match=said):
        words(tools()["memory"][0], given, tmp_path)


def test_a_link_that_leaves_the_folder_is_refused(tmp_path):
    (tmp_path / "out").symlink_to("/etc")
    with pytest.raises(InputError, match="below the working folder"):
        words(tools()["count"][0], {"config": "out/passwd"}, tmp_path)


def test_unknown_names_and_refusals_are_told(tmp_path):
    assert run_call("nothing", {}, tmp_path) == ("unknown tool 'nothing'", True)
    text, refused = run_call("formula", {"cost": "flop", "model": "gtp"}, tmp_path)
    assert refused
    assert "Traceback" not in text


@pytest.mark.slow
def test_a_session(tmp_path):
    pytest.importorskip("mcp")
    import anyio
    from mcp import ClientSession, StdioServerParameters, stdio_client

    server = StdioServerParameters(
        command=sys.executable, args=["-m", "symbolic_cost", "serve", "--mcp"], cwd=str(tmp_path)
    )

    async def session():
        async with (
            stdio_client(server) as (reading, writing),
            ClientSession(reading, writing) as client,
        ):
            await client.initialize()
            names = {tool.name for tool in (await client.list_tools()).tools}
            right = await client.call_tool("formula", {"cost": "flops", "model": "gpt"})
            wrong = await client.call_tool("formula", {"cost": "flops", "model": "/etc/passwd"})
            return names, right, wrong

    names, right, wrong = anyio.run(session)
    assert "time" in names
    assert not right.is_error
    assert '"records"' in right.content[0].text
    assert wrong.is_error

"""A server with what the MCP conformance suite asks for, all of it made of our tools, resources and prompts.

`python conformance_server.py HOME` prints the address. The suite can send no token, so each request gets it here; the
checks of Host and Origin stand in front of it as always.
"""

from __future__ import annotations

import asyncio
import base64
import json
import struct
import sys
import tempfile
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvicorn

from narratoria import Session, ToolContext, ToolRegistry, ToolResult, tool
from narratoria.errors import ToolFailure
from narratoria.kinds.function import function_tool
from narratoria.mcp_server import OfferedPrompt, OfferedResource, ToolServer, client
from narratoria.mcp_server.http_server import create_app
from narratoria.mcp_server.offered_prompts import Argument
from narratoria.store.default_store import default_store
from narratoria.tools.tool import Tool
from narratoria.web.listening import listen
from narratoria.web.sign_ins import SignIns


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


PNG = (
    b"\x89PNG\r\n\x1a\n"
    + _chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    + _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0"))
    + _chunk(b"IEND", b"")
)
WAV = b"RIFF" + struct.pack("<I", 38) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
WAV += b"data" + struct.pack("<I", 2) + b"\x80\x80"
FOLDER = Path(tempfile.mkdtemp())
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


@dataclass(frozen=True)
class Nothing:
    pass


@dataclass(frozen=True)
class Message:
    message: str


@dataclass(frozen=True)
class Prompted:
    prompt: str


def _asset(context: ToolContext, name: str, content: bytes, media_type: str) -> None:
    path = FOLDER / name
    path.write_bytes(content)
    context.asset(path, kind=media_type.partition("/")[0], media_type=media_type)


def simple(name: str, act: Any) -> Tool[Any, Any]:
    """A tool without arguments whose handler is `act(context)`: it returns the message."""

    async def handle(params: Nothing, *, context: ToolContext) -> ToolResult[Any]:
        return ToolResult(await act(context) or "")

    return function_tool(handle, name=name, description=f"Does what the scenario of {name} asks for.")


async def text(context: ToolContext) -> str:
    return "This is a simple text response for testing."


async def image(context: ToolContext) -> None:
    _asset(context, "dot.png", PNG, "image/png")


async def audio(context: ToolContext) -> None:
    _asset(context, "tone.wav", WAV, "audio/wav")


async def embedded(context: ToolContext) -> None:
    _asset(context, "note.txt", b"This is an embedded resource content.", "text/plain")


async def mixed(context: ToolContext) -> str:
    _asset(context, "dot.png", PNG, "image/png")
    _asset(context, "data.json", b'{"test":"data","value":123}', "application/json")
    return "Multiple content types test:"


async def logging(context: ToolContext) -> str:
    for line in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        context.log(line)
        await asyncio.sleep(0.05)
    return "Logged."


async def progress(context: ToolContext) -> str:
    for part in (0, 50, 100):
        context.log(f"{part} of 100", progress=part, total=100)
        await asyncio.sleep(0.05)
    return "Done."


async def error(context: ToolContext) -> str:
    raise ToolFailure("EXECUTION_FAILED", "This tool intentionally returns an error for testing")


def _client() -> Any:
    asked = client()
    assert asked is not None
    return asked


@tool(name="test_sampling", description="Asks the client's model.")
async def sampling(params: Prompted, *, context: ToolContext) -> ToolResult[Any]:
    said = await _client().sample(params.prompt, max_tokens=100)
    return ToolResult(f"LLM response: {said.content.text}")


@tool(name="test_elicitation", description="Asks the person at the client.")
async def elicitation(params: Message, *, context: ToolContext) -> ToolResult[Any]:
    fields = {
        "username": {"type": "string", "description": "User's response"},
        "email": {"type": "string", "description": "User's email address"},
    }
    form = {"type": "object", "properties": fields, "required": ["username", "email"]}
    reply = await _client().elicit(params.message, form)
    return ToolResult(f"User response: <action: {reply.action}, content: {json.dumps(reply.content)}>")


def eliciting(properties: dict[str, Any]) -> Any:
    async def act(context: ToolContext) -> str:
        form = {"type": "object", "properties": properties, "required": []}
        reply = await _client().elicit("Please fill this in.", form)
        return f"Elicitation completed: action={reply.action}, content={json.dumps(reply.content)}"

    return act


DEFAULTS = {
    "name": {"type": "string", "default": "John Doe"},
    "age": {"type": "integer", "default": 30},
    "score": {"type": "number", "default": 95.5},
    "status": {"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
    "verified": {"type": "boolean", "default": True},
}
OPTIONS = ["option1", "option2", "option3"]
TITLED = [
    {"const": f"value{n}", "title": f"{word} Option"}
    for n, word in enumerate(("First", "Second", "Third"), 1)
]
ENUMS = {
    "untitledSingle": {"type": "string", "enum": OPTIONS},
    "titledSingle": {"type": "string", "oneOf": TITLED},
    "legacyEnum": {
        "type": "string",
        "enum": ["opt1", "opt2", "opt3"],
        "enumNames": ["Option One", "Option Two", "Option Three"],
    },
    "untitledMulti": {"type": "array", "items": {"type": "string", "enum": OPTIONS}},
    "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
}


async def ask_name(context: ToolContext) -> str:
    reply = await _client().elicit("What is your name?", NAME, key="user_name")
    return f"Hello, {(reply.content or {}).get('name')}!"


async def ask_model(context: ToolContext) -> str:
    said = await _client().sample("What is the capital of France?", max_tokens=100)
    return str(said.content.text)


async def ask_roots(context: ToolContext) -> str:
    return ", ".join(str(root.uri) for root in (await _client().roots()).roots)


async def confirm(context: ToolContext) -> str:
    form = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}
    await _client().elicit("Please confirm", form)
    return "state-ok"


async def ask_all(context: ToolContext) -> str:
    asked = _client()
    name, said, roots = await asyncio.gather(
        asked.elicit("What is your name?", NAME),
        asked.sample("Generate a greeting", max_tokens=50),
        asked.roots(),
    )
    return f"{said.content.text} {name.content} {len(roots.roots)}"


async def ask_twice(context: ToolContext) -> str:
    first = await _client().elicit("Step 1: What is your name?", NAME)
    colour = {"type": "object", "properties": {"color": {"type": "string"}}, "required": ["color"]}
    second = await _client().elicit("Step 2: What is your favorite color?", colour)
    return f"{first.content} {second.content}"


async def ask_what_it_can(context: ToolContext) -> str:
    asked = _client()
    questions = [asked.sample("Hello?", max_tokens=10)] if asked.can("sampling") else []
    questions += [asked.elicit("Who?", NAME)] if asked.can("elicitation") else []
    return str(len(await asyncio.gather(*questions)))


SCHEMA: dict[str, Any] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {"$anchor": "addressDef", "type": "object", "properties": {"street": {"type": "string"}}}
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}


HEADER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "query": {"type": "string"},
    },
    "required": ["region"],
}


async def with_schema(params: Any, *, context: ToolContext) -> ToolResult[Any]:
    return ToolResult("ok")


def registry_of() -> ToolRegistry:
    registry = ToolRegistry([sampling, elicitation])
    for name, act in {
        "test_simple_text": text,
        "test_image_content": image,
        "test_audio_content": audio,
        "test_embedded_resource": embedded,
        "test_multiple_content_types": mixed,
        "test_tool_with_logging": logging,
        "test_logging_tool": logging,
        "test_tool_with_progress": progress,
        "test_error_handling": error,
        "test_elicitation_sep1034_defaults": eliciting(DEFAULTS),
        "test_elicitation_sep1330_enums": eliciting(ENUMS),
        "test_input_required_result_elicitation": ask_name,
        "test_input_required_result_sampling": ask_model,
        "test_input_required_result_list_roots": ask_roots,
        "test_input_required_result_request_state": confirm,
        "test_input_required_result_tampered_state": confirm,
        "test_input_required_result_multiple_inputs": ask_all,
        "test_input_required_result_multi_round": ask_twice,
        "test_input_required_result_capabilities": ask_what_it_can,
        "test_streaming_elicitation": ask_name,
        "test_missing_capability": ask_model,
    }.items():
        registry.register(simple(name, act))
    registry.register(Tool("json_schema_2020_12_tool", "Has a schema.", with_schema, parameters=SCHEMA))
    registry.register(Tool("test_custom_headers", "Has a header.", with_schema, parameters=HEADER))

    async def change(context: ToolContext) -> str:
        registry.unregister("changing")
        registry.register(simple("changing", text))
        return "changed"

    registry.register(simple("test_trigger_tool_change", change))
    return registry


def _message(**content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


async def asking_prompt(given: Any) -> str:
    form = {"type": "object", "properties": {"context": {"type": "string"}}, "required": ["context"]}
    reply = await _client().elicit("What context should the prompt use?", form)
    return f"In the context {reply.content}"


PROMPTS = [
    OfferedPrompt("test_simple_prompt", lambda given: "This is a simple prompt for testing.", "Simple."),
    OfferedPrompt(
        "test_prompt_with_arguments",
        lambda given: f"Prompt with arguments: arg1='{given['arg1']}', arg2='{given['arg2']}'",
        "Takes two arguments.",
        arguments=(Argument("arg1", "One."), Argument("arg2", "Another.")),
    ),
    OfferedPrompt(
        "test_prompt_with_embedded_resource",
        lambda given: [
            _message(
                type="resource",
                resource={
                    "uri": given["resourceUri"],
                    "mimeType": "text/plain",
                    "text": "Embedded resource content for testing.",
                },
            ),
            _message(type="text", text="Please process the embedded resource above."),
        ],
        "Embeds a resource.",
        arguments=(Argument("resourceUri", "Its address."),),
    ),
    OfferedPrompt(
        "test_prompt_with_image",
        lambda given: [
            _message(type="image", data=base64.b64encode(PNG).decode(), mimeType="image/png"),
            _message(type="text", text="Please analyze the image above."),
        ],
        "Shows a picture.",
    ),
    OfferedPrompt("test_input_required_result_prompt", asking_prompt, "Asks first."),
]
RESOURCES = [
    OfferedResource("test://static-text", "This is the content of the static text resource."),
    OfferedResource("test://static-binary", PNG, media_type="image/png"),
    OfferedResource("test://watched-resource", "Watched."),
    OfferedResource(
        "test://template/{id}/data",
        lambda given: json.dumps(
            {"id": given["id"], "templateTest": True, "data": f"Data for ID: {given['id']}"}
        ),
        media_type="application/json",
    ),
]


async def main(home: Path) -> None:
    store = default_store(home)
    journal = store.create(Session(assets=store.assets))
    server = ToolServer(registry_of(), journal.session, prompts=PROMPTS, resources=RESOURCES)
    listener = listen("127.0.0.1", 0, "")
    port = listener.getsockname()[1]
    sign_ins = SignIns()
    header = (b"authorization", f"Bearer {sign_ins.print_token()}".encode())
    guarded = create_app(server, sign_ins, host="127.0.0.1", port=port)

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], header]}
        await guarded(scope, receive, send)

    print(f"http://127.0.0.1:{port}/mcp", flush=True)
    config = uvicorn.Config(with_token, log_level="warning", timeout_graceful_shutdown=1, lifespan="on")
    await uvicorn.Server(config).serve(sockets=[listener])
    await journal.close()
    store.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))

"""From a document to tools: names, descriptions, one schema for the arguments."""

import json
from itertools import pairwise

import pytest

from narratoria import openapi_tools
from narratoria.kinds.openapi.document import DocumentInvalid
from narratoria.kinds.outside_effect import OutsideEffect

MANY = "a: &a [x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 9)}]\n" for old, new in pairwise("abcdefghi")
)


def spec(paths, version="3.1.0", **more):
    return {"openapi": version, "info": {"title": "Pets", "version": "1"}, "paths": paths, **more}


def made(paths, **more):
    options = {key: more.pop(key) for key in ("name", "only", "tools", "secrets") if key in more}
    found = openapi_tools(spec(paths, **more), "http://127.0.0.1", **options)
    return {tool.name: tool for tool in found}


def one(operation, method="post", **more):
    return next(iter(made({"/it": {method: {"operationId": "it", **operation}}}, **more).values()))


def body_of(schema, **more):
    tool = one({"requestBody": {"content": {"application/json": {"schema": schema}}}}, **more)
    return tool.parameters["properties"]["body"]


def test_names_come_from_the_operation_ids_and_are_mapped_the_same_everywhere():
    paths = {
        "/pets/{petId}": {
            "get": {"operationId": "getPetById"},
            "delete": {},
            "put": {"operationId": "repos/set topics"},
        },
        "/a": {"get": {"operationId": "list"}},
        "/b": {"get": {"operationId": "list"}},
    }
    assert list(made(paths)) == [
        "getpetbyid", "repos_set_topics", "delete_pets_petid", "list_get_a", "list_get_b",
    ]  # fmt: skip
    assert "pets.getpetbyid" in made(paths, name="Pets")
    notes = openapi_tools(spec(paths), "http://127.0.0.1").notes
    assert "getpetbyid: the document calls it 'getPetById'" in notes


def test_names_that_collide_end_in_digits():
    names = list(made({"/a": {"get": {"operationId": "GetPet"}, "put": {"operationId": "getPet"}}}))
    assert len(set(names)) == 2 and all(name.startswith("getpet_") for name in names)


def test_a_long_description_is_no_reason_to_refuse_an_operation():
    tool = one({"summary": "Finds a pet.", "description": "x" * 5000, "deprecated": True})
    assert tool.description.startswith("Deprecated. Finds a pet.\n\nxxx") and tool.title == "Finds a pet."


def test_reading_has_no_effect_and_anything_else_one_that_stays():
    tools = made({"/it": {method: {} for method in ("get", "head", "post", "put", "patch", "delete")}})
    staying = {
        name for name, tool in tools.items() if any(isinstance(e, OutsideEffect) for e in tool.effects)
    }
    assert staying == {"post_it", "put_it", "patch_it", "delete_it"}


def test_settings_of_an_operation_are_those_of_a_manifest():
    tools = {"it": {"timeout": 5, "permissions": ["pets:write"], "effects": [], "retry": {"maxRetries": 1}}}
    tool = one({}, tools=tools)
    assert (tool.timeout, tool.permissions, tool.effects, tool.retry.max_retries) == (
        5,
        ("pets:write",),
        (),
        1,
    )
    with pytest.raises(DocumentInvalid, match=r"tools: it: .*timeot"):
        one({}, tools={"it": {"timeot": 5}})


def test_parameters_of_all_places_are_one_schema():
    paths = {
        "/pets/{id}": {
            "parameters": [
                {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}},
                {"name": "trace", "in": "header", "schema": {"type": "string"}},
            ],
            "post": {
                "operationId": "it",
                "parameters": [
                    {"$ref": "#/components/parameters/Id"},
                    {"name": "trace", "in": "header", "required": True, "schema": {"type": "integer"}},
                    {"name": "Authorization", "in": "header", "schema": {"type": "string"}},
                    {"name": "s", "in": "cookie", "description": "A session.", "schema": {"type": "string"}},
                ],
                "requestBody": {
                    "required": True,
                    "content": {"application/json": {"schema": {"type": "object"}}},
                },
            },
        }
    }
    parameters = {"Id": {"name": "id", "in": "query", "schema": {"type": "string"}}}
    tool = made(paths, components={"parameters": parameters})["it"]
    assert tool.parameters == {
        "type": "object",
        "properties": {
            "id": {"type": "integer"},
            "query_id": {"type": "string"},
            "trace": {"type": "integer"},
            "s": {"type": "string", "description": "A session."},
            "body": {"type": "object"},
        },
        "required": ["id", "trace", "body"],
        "additionalProperties": False,
    }


def test_references_become_definitions_even_in_a_circle():
    tree = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/components/schemas/Tree"}}},
    }
    operation = {"requestBody": {"$ref": "#/components/requestBodies/Tree"}}
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/Tree"}}}
    tool = one(
        operation, components={"schemas": {"Tree": tree}, "requestBodies": {"Tree": {"content": content}}}
    )
    assert tool.parameters["properties"]["body"] == {"$ref": "#/$defs/Tree"}
    assert tool.parameters["$defs"]["Tree"]["properties"]["kids"]["items"] == {"$ref": "#/$defs/Tree"}
    tool.parse({"body": {"kids": [{"kids": []}]}})
    with pytest.raises(Exception, match="kids"):
        tool.parse({"body": {"kids": [{"kids": 5}]}})


def test_the_schemas_of_3_0_are_said_again_in_2020_12():
    old = {"type": "integer", "nullable": True, "minimum": 1, "exclusiveMinimum": True, "maximum": 9,
           "exclusiveMaximum": False, "example": 4, "xml": {"name": "n"}}  # fmt: skip
    assert body_of(old, version="3.0.3") == {
        "type": ["integer", "null"], "exclusiveMinimum": 1, "maximum": 9, "examples": [4],
    }  # fmt: skip
    either = {"nullable": True, "oneOf": [{"type": "string"}]}
    assert body_of(either, version="3.0.3") == {"anyOf": [{"oneOf": [{"type": "string"}]}, {"type": "null"}]}


def test_a_default_is_told_and_never_sent():
    tool = one({"parameters": [{"name": "n", "in": "query", "schema": {"type": "integer", "default": 30}}]})
    assert tool.parse({}) == {}
    assert tool.parameters["properties"]["n"]["description"] == "(The server's default: 30)"


def test_what_only_answers_have_is_no_argument():
    schema = {"type": "object", "required": ["id", "name"], "properties": {
        "id": {"type": "integer", "readOnly": True}, "name": {"type": "string"}}}  # fmt: skip
    assert body_of(schema) == {
        "type": "object",
        "required": ["name"],
        "properties": {"name": {"type": "string"}},
    }


def test_a_schema_that_cannot_be_read_is_left_to_the_server():
    found = openapi_tools(spec({"/it": {"get": {"parameters": [
        {"name": "q", "in": "query", "schema": {"type": "nonsense"}}]}}}), "http://127.0.0.1")  # fmt: skip
    assert found.tools[0].parse({"q": "x"}) == {"q": "x"}
    assert "checked by the server only" in found.notes[0]


def test_an_operation_that_cannot_be_read_hides_no_other():
    paths = {
        "/a": {"get": {"operationId": "a", "parameters": [{"$ref": "other.yaml#/x"}]}},
        "/b": {"get": {"operationId": "b", "parameters": [{"$ref": "#/components/nowhere"}]}},
        "/c": {"get": {"operationId": "c"}},
    }
    found = openapi_tools(spec(paths), "http://127.0.0.1")
    assert [tool.name for tool in found] == ["c"]
    assert "bundle it" in found.notes[0] and "leads nowhere" in found.notes[1]


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        ({"swagger": "2.0"}, "Swagger 2.0"),
        ({"openapi": "4.0.0"}, "expected OpenAPI 3.0 or 3.1"),
        ("{not json", "not JSON"),
        ("a:\n  - b\n c", "not YAML"),
        ("/nowhere/at/all.json", "cannot be read"),
        ("[1]\n", "expected an object"),
        (MANY, "aliases"),
        ("a: &a\n  b: *a\n", "aliases"),
    ],
)  # fmt: skip
def test_a_document_that_cannot_be_used_says_why(document, problem):
    with pytest.raises(DocumentInvalid, match=problem):
        openapi_tools(document, "http://127.0.0.1")


def test_a_document_may_be_a_file_or_a_text_in_json_or_yaml(tmp_path):
    paths = {"/a": {"get": {"operationId": "a", "responses": {"200": {"description": "2020-01-01"}}}}}
    (tmp_path / "a.json").write_text(json.dumps(spec(paths)))
    text = "openapi: 3.0.3\ninfo: {title: A, version: 2020-01-01}\npaths:\n  /a:\n    get:\n      operationId: a\n" \
           "      responses: {200: {description: fine}}\n"  # fmt: skip
    (tmp_path / "a.yaml").write_text(text)
    for source in (tmp_path / "a.json", str(tmp_path / "a.yaml"), text, json.dumps(spec(paths))):
        assert [tool.name for tool in openapi_tools(source, "http://127.0.0.1")] == ["a"]


@pytest.mark.parametrize(
    "url", ["ftp://a.example", "file:///etc/passwd", "a.example", "http://u:p@a", "http://a/?k=v"]
)
def test_only_plain_addresses_of_http_are_taken(url):
    with pytest.raises(DocumentInvalid, match="base_url"):
        openapi_tools(spec({}), url)


def test_the_server_of_the_document_is_used_and_another_host_needs_a_word():
    paths = {
        "/a": {"get": {"operationId": "a"}},
        "/b": {"get": {"operationId": "b", "servers": [{"url": "https://elsewhere.example"}]}},
        "/c": {"get": {"operationId": "c", "servers": [{"url": "https://api.example/v2"}]}},
    }
    server = {"url": "https://{place}.example/v1/", "variables": {"place": {"default": "api"}}}
    found = openapi_tools(spec(paths, servers=[server]))
    assert [tool.origin for tool in found] == [
        "Pets: GET https://api.example/v1/a",
        "Pets: GET https://api.example/v2/c",
    ]
    assert "take it by itself with base_url='https://elsewhere.example'" in found.notes[0]
    lost = openapi_tools(spec({"/a": {"get": {}}}))
    assert not lost.tools and "give base_url" in lost.notes[0]


def test_only_names_the_operations_to_take():
    paths = {"/a": {"get": {"operationId": "a"}, "put": {"operationId": "b"}}}
    found = openapi_tools(spec(paths), "http://127.0.0.1", only=["b", "z"])
    assert [tool.name for tool in found] == ["b"]
    assert found.notes == ["Pets: the document has no operation 'z'"]


def test_only_methods_that_do_the_same_again_and_declared_retries_may_be_repeated():
    methods = ("get", "put", "delete", "post", "patch")
    assert [one({}, method=method).repeatable for method in methods] == [True, True, True, False, False]
    assert one({}, tools={"it": {"retry": {"maxRetries": 1}}}).repeatable


def test_an_operation_that_is_no_object_is_noted():
    found = openapi_tools(spec({"/it": {"get": 5, "put": {}}}), "http://127.0.0.1")
    assert [tool.name for tool in found] == ["put_it"]
    assert found.notes == ["GET /it: left out: expected an object that describes it"]


def test_the_headers_of_the_connection_are_no_arguments():
    names = ["Host", "content-length", "Transfer-Encoding", "Connection", "X-Kept"]
    tool = one({"parameters": [{"name": name, "in": "header", "schema": {}} for name in names]}, method="get")
    assert [*tool.parameters["properties"]] == ["X-Kept"]


def test_parameters_that_are_no_list_and_versions_we_do_not_know_are_told():
    notes = openapi_tools(
        spec({"/it": {"get": {"operationId": "it", "parameters": 5}}}), "http://127.0.0.1"
    ).notes
    assert "parameters: expected an array" in notes[0]
    with pytest.raises(DocumentInvalid, match=r"got openapi: '3\.2\.0'$"):
        openapi_tools(spec({}, version="3.2.0"), "http://127.0.0.1")

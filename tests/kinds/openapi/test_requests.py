"""Arguments in the path, the query, headers, cookies and bodies, as a real server gets them."""

import base64
import email.parser
import email.policy

import pytest

from narratoria import ToolRegistry, openapi_tools

COLOURS = ["blue", "black", "a,b"]
RGB = {"R": 100, "G": 200}


async def call(api, path, operation, arguments, method="post", **options):
    document = {
        "openapi": "3.1.0",
        "info": {"title": "T", "version": "1"},
        "paths": {path: {method: {"operationId": "it", **operation}}},
        **options,
    }
    result = await ToolRegistry(openapi_tools(document, api.url)).execute("it", arguments)
    assert result.success, result.message
    return api.last


@pytest.mark.parametrize(
    ("style", "explode", "value", "expected"),
    [
        ("simple", False, "a/b ü", "a%2Fb%20%C3%BC"),
        ("simple", False, 5, "5"),
        ("simple", False, True, "true"),
        ("simple", False, COLOURS, "blue,black,a%2Cb"),
        ("simple", False, RGB, "R,100,G,200"),
        ("simple", True, RGB, "R=100,G=200"),
        ("label", False, COLOURS, ".blue,black,a%2Cb"),
        ("label", True, COLOURS, ".blue.black.a%2Cb"),
        ("label", True, RGB, ".R=100.G=200"),
        ("matrix", False, "blue", ";v=blue"),
        ("matrix", False, COLOURS, ";v=blue,black,a%2Cb"),
        ("matrix", True, COLOURS, ";v=blue;v=black;v=a%2Cb"),
        ("matrix", False, RGB, ";v=R,100,G,200"),
        ("matrix", True, RGB, ";R=100;G=200"),
    ],
)
async def test_styles_of_a_path(api, style, explode, value, expected):
    parameter = {
        "name": "v",
        "in": "path",
        "required": True,
        "style": style,
        "explode": explode,
        "schema": {},
    }
    asked = await call(api, "/it/{v}/end", {"parameters": [parameter]}, {"v": value}, "get")
    assert asked.path == f"/it/{expected}/end"


@pytest.mark.parametrize(
    ("more", "value", "expected"),
    [
        ({}, "a b&c=d", "v=a%20b%26c%3Dd"),
        ({}, 2.0, "v=2"),
        ({}, COLOURS, "v=blue&v=black&v=a%2Cb"),
        ({"explode": False}, COLOURS, "v=blue,black,a%2Cb"),
        ({}, RGB, "R=100&G=200"),
        ({"explode": False}, RGB, "v=R,100,G,200"),
        ({"style": "spaceDelimited"}, ["a", "b"], "v=a%20b"),
        ({"style": "pipeDelimited"}, ["a", "b"], "v=a%7Cb"),
        ({"style": "deepObject"}, {"a": 1, "b": {"c": "x y"}}, "v%5Ba%5D=1&v%5Bb%5D%5Bc%5D=x%20y"),
        ({"allowReserved": True}, "a/b:c&d", "v=a/b:c%26d"),
        ({"content": {"application/json": {"schema": {}}}}, {"a": [1]}, "v=%7B%22a%22%3A%5B1%5D%7D"),
        ({}, None, ""),
        ({}, [], ""),
    ],
)
async def test_styles_of_a_query(api, more, value, expected):
    parameter = {"name": "v", "in": "query", "schema": {}, **more}
    asked = await call(api, "/it", {"parameters": [parameter]}, {"v": value}, "get")
    assert asked.path.partition("?")[2] == expected


async def test_headers_and_cookies(api):
    parameters = [
        {"name": "X-List", "in": "header", "schema": {"type": "array"}},
        {"name": "session", "in": "cookie", "schema": {"type": "string"}},
    ]
    asked = await call(
        api, "/it", {"parameters": parameters}, {"X-List": ["a", "ü"], "session": "a b"}, "get"
    )
    assert (
        asked.headers["X-List"].encode("latin-1").decode() == "a,ü"
        and asked.headers["Cookie"] == "session=a%20b"
    )


@pytest.mark.parametrize("value", ["", ".", "..", "%2e%2e/x", "../admin"])
async def test_a_value_leads_to_no_other_path(api, value):
    document = {"openapi": "3.1.0", "info": {}, "paths": {"/pets/{id}": {"delete": {"operationId": "it"}}}}
    result = await ToolRegistry(openapi_tools(document, api.url)).execute("it", {"id": value})
    if result.success:
        assert api.last.path.startswith("/pets/") and api.last.path.count("/") == 2
    else:
        assert "id: expected a value" in result.message and not api.asked


async def test_a_header_has_no_line_breaks(api):
    parameters = [{"name": "X-A", "in": "header", "schema": {"type": "string"}}]
    document = {
        "openapi": "3.1.0",
        "info": {},
        "paths": {"/": {"get": {"operationId": "it", "parameters": parameters}}},
    }
    result = await ToolRegistry(openapi_tools(document, api.url)).execute("it", {"X-A": "a\r\nX-B: c"})
    assert not result.success and "X-A" in result.message and not api.asked


def content(media_type, **more):
    return {"requestBody": {"content": {media_type: {"schema": {"type": "object"}, **more}}}}


async def test_a_body_of_json(api):
    asked = await call(api, "/it", content("application/merge-patch+json"), {"body": {"a": None}})
    assert asked.json == {"a": None} and asked.headers["Content-Type"] == "application/merge-patch+json"


async def test_a_body_that_is_a_form(api):
    encoding = {
        "deep": {"style": "deepObject", "explode": True},
        "joined": {"style": "form", "explode": False},
    }
    value = {"a": "x y&", "list": [1, 2], "deep": {"k": [5]}, "joined": [1, 2], "json": {"k": 1}}
    asked = await call(
        api, "/it", content("application/x-www-form-urlencoded", encoding=encoding), {"body": value}
    )
    assert asked.body == b"a=x%20y%26&list=1&list=2&deep%5Bk%5D%5B%5D=5&joined=1,2&json=%7B%22k%22%3A1%7D"


async def test_a_body_of_parts_with_a_file(api):
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "meta": {"type": "object"},
            "file": {"type": "string", "format": "binary"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    file = {"base64": base64.b64encode(b"\x00\xff").decode(), "filename": "a.png", "mediaType": "image/png"}
    value = {"name": "Ü", "meta": {"k": 1}, "file": file, "tags": ["a", "b"]}
    asked = await call(api, "/it", content("multipart/form-data", schema=schema), {"body": value})
    head = f"Content-Type: {asked.headers['Content-Type']}\r\n\r\n".encode()
    parts = [*email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + asked.body).iter_parts()]
    told = [
        (one.get_param("name", header="content-disposition"), one.get_filename(), one.get_content_type(),
         one.get_payload(decode=True))
        for one in parts
    ]  # fmt: skip
    assert told == [
        ("name", None, "text/plain", "Ü".encode()),
        ("meta", None, "application/json", b'{"k":1}'),
        ("file", "a.png", "image/png", b"\x00\xff"),
        ("tags", None, "text/plain", b"a"),
        ("tags", None, "text/plain", b"b"),
    ]


async def test_a_body_of_bytes_and_one_of_text(api):
    coded = {"base64": base64.b64encode(b"\x00\xff").decode()}
    asked = await call(api, "/it", content("application/octet-stream"), {"body": coded})
    assert asked.body == b"\x00\xff"
    asked = await call(api, "/it", content("application/xml"), {"body": "<a/>"})
    assert (asked.body, asked.headers["Content-Type"]) == (b"<a/>", "application/xml")

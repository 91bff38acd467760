"""A language model chosen in Settings: found, listed, tested, saved, played with; its key is nowhere to be seen."""

from __future__ import annotations

import json
import time
import zipfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.scripted_models import model

from conftest import RunningServer
from narratoria.testing import Fails, Redirects, Says, Serves

KEY = "sk-test-0123456789abcdef"
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"


def plan(narrative: str, **options: Any) -> Says:
    return Says(json.dumps({"narrative": narrative, "calls": [], "order": "together"}), **options)


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """No model is configured where the server is started."""
    for name in ("NARRATORIA_LLM_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "NARRATORIA_LLM_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)


def kept(home: Path) -> bytes:
    """Everything in a home but the file of the key."""
    return b"".join(
        one.read_bytes() for one in home.rglob("*") if one.is_file() and one.parent.name != "keys"
    )


def play(client: httpx.Client, session: str, prompt: str) -> None:
    client.post(f"/sessions/{session}/prompt", json={"prompt": prompt}).raise_for_status()
    for _ in range(300):
        events = client.get(f"/sessions/{session}/events?once=1").text
        if '"turn_committed","turn":1' in events:
            return
        time.sleep(0.1)
    raise AssertionError("the turn did not end")


@pytest.mark.usefixtures("quiet")
def test_a_key_goes_to_its_server_alone_and_is_never_given_out(
    make_server: Callable[..., RunningServer],
) -> None:
    server = make_server()
    evil_twin = model(Says("x"))
    with (
        evil_twin as other,
        model(
            plan(f"The key is {KEY}."), Fails(401, f"bad key {KEY}"), models=Redirects(other.url)
        ) as scripted,
        server.client() as client,
    ):
        assert httpx.get(f"{server.origin}/model").status_code in (401, 403)
        assert client.get("/model").json()["address"] == ""
        asked = {"address": scripted.url, "model": "m", "key": KEY}
        chosen = client.put("/model", json=asked | {"inputPrice": 1.0, "outputPrice": 2.0})
        assert chosen.json()["key"] == "file" and chosen.json()["inputPrice"] == 1.0
        session = server.new_session()
        client.put(f"/sessions/{session}/settings", json={"narrator": "llm"}).raise_for_status()
        play(client, session, "say the key")
        assert scripted.headers[0]["authorization"] == f"Bearer {KEY}"
        listed = client.post("/model/list", json={"address": scripted.url})  # which redirects
        assert listed.json()["problem"] == "address" and not other.looks
        tested = client.post("/model/test", json={"address": scripted.url, "model": "m"})
        assert tested.json()["problem"] == "key"
        # another server is asked, and the key that is kept stays at home
        assert client.post("/model/list", json={"address": other.url}).json()["models"] == ["scripted"]
        assert "authorization" not in other.looks[-1]
        refused = client.put("/model", json=asked | {"address": f"http://u:{KEY}@127.0.0.1/v1"})
        assert refused.status_code == 422 and "password" in refused.json()["message"]
        events = client.get(f"/sessions/{session}/events?once=1").text
        assert '"model_asked"' in events and '"inputTokens":10' in events and '"cost":0.00002' in events
        export = client.get(f"/sessions/{session}/export").content
        media = {"Content-Type": "application/octet-stream"}
        twin = client.post("/import", content=export, headers=media).raise_for_status().json()["id"]
        assert '"model_asked"' in client.get(f"/sessions/{twin}/events?once=1").text
        unpacked = b"".join(
            zipfile.ZipFile(BytesIO(export)).read(one) for one in zipfile.ZipFile(BytesIO(export)).namelist()
        )
        answers = "".join(one.text for one in (chosen, listed, tested, refused, client.get("/model")))
        assert KEY not in answers + events and KEY.encode() not in unpacked
        server.stop()
        assert KEY.encode() not in kept(server.home)
        assert (server.home / "keys" / "model-key").read_text().endswith(KEY)


@pytest.mark.browser
@pytest.mark.usefixtures("quiet")
def test_a_model_is_found_tested_saved_and_tells_the_story(
    make_server: Callable[..., RunningServer],
    open_page: Callable[..., Any],
    shoot: Callable[..., Any],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    expect = pytest.importorskip("playwright.sync_api").expect
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    names = [{"id": one} for one in ("gemma3:4b", HOSTILE, "y" * 1_000_000, "z" * 200)]
    script = [
        Says(f"Good evening, {HOSTILE} reader."),
        plan("The tide hums back.", tokens=(1234, 56), model="gemma3:4b"),
    ]
    with model(*script, models=Serves({"data": names})) as scripted:
        monkeypatch.setenv("OLLAMA_HOST", scripted.url.removesuffix("/v1").removeprefix("http://"))
        server = make_server()
        page = open_page(server.at(f"/play/{server.new_session()}"))
        page.get_by_role("button", name="Settings").click()
        dialog = page.get_by_role("dialog", name="Settings")
        section = dialog.locator(".model")
        expect(section).to_contain_text("Ollama runs on this computer")
        shoot(page, "model-found")
        section.get_by_role("button", name="Use Ollama").click()
        names_box = section.get_by_role("combobox", name="Model", exact=True)
        expect(names_box).to_be_focused()
        expect(section).to_contain_text("3 models")
        expect(names_box.locator("option")).to_have_text(["gemma3:4b", HOSTILE, "z" * 200, "Another name…"])
        names_box.select_option(HOSTILE)
        section.get_by_role("button", name="Test").press("Enter")
        expect(section.locator(".model-result")).to_contain_text(f"“Good evening, {HOSTILE} reader.”")
        assert scripted.requests[0]["model"] == HOSTILE
        shoot(page, "model-tested")
        section.get_by_label("Address").fill("http://127.0.0.1:9/v1")
        section.get_by_role("button", name="Test").click()
        expect(section.locator(".model-result.wrong")).to_contain_text(
            "Nothing answers at http://127.0.0.1:9/v1. Start"
        )
        expect(section.locator(".model-result.wrong")).to_be_in_viewport(ratio=1)
        shoot(page, "model-wrong")
        section.get_by_label("Server").select_option("vLLM")
        section.get_by_label("Server").select_option("Ollama")
        expect(section.get_by_label("Address")).to_have_value(scripted.url)
        expect(names_box.locator("option")).to_have_count(4)
        names_box.select_option("gemma3:4b")
        section.get_by_label("Key").fill(KEY)
        section.get_by_text("Time and price").click()
        section.get_by_label("Dollars for a million tokens read").fill("0.15")
        for theme, width in (("dark", 1280), ("light", 1280), ("dark", 320), ("light", 320)):
            page.set_viewport_size({"width": width, "height": 860})
            page.evaluate("(theme) => { document.documentElement.dataset.theme = theme; }", theme)
            names_box.scroll_into_view_if_needed()
            shoot(page, f"model-form-{theme}-{width}")
            assert not axe.run(page).response["violations"], axe.run(page).generate_report()
            assert dialog.evaluate("(node) => node.scrollWidth <= node.clientWidth"), (
                f"too wide at {width} px"
            )
        page.set_viewport_size({"width": 1280, "height": 860})
        section.get_by_role("button", name="Save").click()
        expect(section).to_contain_text(f"gemma3:4b, at {scripted.url}")
        expect(section.locator("summary").first).to_be_focused()
        dialog.get_by_role("radio", name="Language model").check()
        section.locator("summary").first.click()
        expect(section.get_by_label("Key")).to_have_value("")
        expect(section).to_contain_text("Kept in a file that only you can open. It is not shown again.")
        page.get_by_role("button", name="Close settings").click()
        box = page.get_by_role("textbox", name="What do you do?")
        box.fill("sing to the sea")
        box.press("Enter")
        expect(page.get_by_role("log", name="Story")).to_contain_text("The tide hums back.")
        expect(page.get_by_role("status").first).to_have_text("Your turn")
        page.get_by_role("button", name="Actions for turn 1").click()
        menu = page.get_by_role("menu")
        expect(menu).to_contain_text("Told by a language model")
        expect(menu).to_contain_text("gemma3:4b: 1,234 tokens read, 56 written")
        expect(menu).to_contain_text("$0.00019")
        shoot(page, "model-menu")
        assert page.title() != "owned" and KEY not in page.content()
        page.keyboard.press("Escape")
        page.get_by_role("button", name="Settings").click()
        section.locator("summary").first.click()
        shoot(page, "model-kept-key")
        section.get_by_role("button", name="Remove the key").click()
        section.get_by_role("button", name="Save").click()
        expect(section).to_contain_text("Most servers on your own computer want none.")
        assert not (server.home / "keys" / "model-key").exists()
        section.locator("summary").first.click()
        section.get_by_role("button", name="Forget this model").click()
        expect(section).to_contain_text("None yet.")
        assert not (server.home / "model.json").exists()
        assert not (server.home / "keys" / "model-key").exists()

"""Settings of skills over HTTP and on the page: the form is made from the skill's schema."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

SCHEMA = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "title": "City", "description": "Where you are.", "default": "Oslo"},
        "days": {"type": "integer", "title": "Days", "minimum": 1},
        "loud": {"type": "boolean", "title": "Loud", "default": False},
        "unit": {"enum": ["metric", "imperial"], "title": "Unit"},
        "places": {"type": "array", "title": "Places", "items": {"type": "string"}, "default": ["sea"]},
        "key": {"type": "string", "title": "Key of the service", "format": "password"},
    },
    "additionalProperties": False,
}


@pytest.fixture
def weathered(fresh_server: Any) -> Any:
    """A server whose workshop has a skill with settings."""
    root: Path = fresh_server.home / "stories" / "workshop" / "skills" / "weather"
    root.mkdir(parents=True)
    (root / "SKILL.md").write_text("---\nname: weather\ndescription: Tells the weather.\n---\nSeldom.\n")
    (root / "settings.schema.json").write_text(json.dumps(SCHEMA))
    return fresh_server


def weather(document: Any) -> Any:
    [found] = [one for one in document["skills"] if one["name"] == "weather"]
    return {field["key"]: field for field in found["settings"]}


def test_a_skill_is_set_over_http_and_what_does_not_fit_is_refused(weathered: Any) -> None:
    session = weathered.new_session()
    with weathered.client() as client:
        at = f"/sessions/{session}/settings"
        fields = weather(client.get(at).json())
        assert [(one["kind"], one["source"]) for one in fields.values()] == [
            ("text", "default"),
            ("number", "not set"),
            ("switch", "default"),
            ("choice", "not set"),
            ("json", "default"),
            ("secret", "not set"),
        ]
        changed = client.put(
            at, json={"skillSettings": {"weather": {"city": "Bergen", "key": "env:SEA_KEY"}}}
        )
        assert weather(changed.json())["city"]["value"] == "Bergen"
        assert weather(changed.json())["key"]["value"] == "env:SEA_KEY"
        refused = client.put(at, json={"skillSettings": {"weather": {"key": "hunter22"}}})
        assert refused.status_code == 422
        assert "say where it is kept" in refused.json()["message"]
        assert client.put(at, json={"skillSettings": {"nobody": {"a": 1}}}).status_code == 422
    [written] = (weathered.home / "skills").glob("weather-*/settings.json")
    assert json.loads(written.read_text()) == {"city": "Bergen", "key": "env:SEA_KEY"}


@pytest.mark.browser
def test_the_form_of_a_skill_is_on_the_page(
    weathered: Any, open_page: Callable[..., Page], shoot: Any
) -> None:
    page = open_page(weathered.at(f"/play/{weathered.new_session()}"))
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    dialog.get_by_text("Advanced: skills").click()
    dialog.get_by_text("Settings of weather").click()
    dialog.get_by_label("City").fill("Bergen")
    dialog.get_by_label("City").press("Tab")
    expect(dialog.get_by_role("status")).to_have_text("Saved.")
    dialog.get_by_label("Days").fill("0")
    dialog.get_by_label("Days").press("Tab")
    expect(dialog.get_by_role("alert")).to_contain_text("days")
    expect(dialog.get_by_label("Days")).to_have_value("")
    dialog.get_by_role("switch", name="Loud", exact=True).click()
    expect(dialog.get_by_role("status")).to_have_text("Saved.")
    dialog.get_by_label("Unit").select_option("imperial")
    dialog.get_by_label("Key of the service").fill("env:SEA_KEY")
    dialog.get_by_label("Key of the service").press("Tab")
    expect(dialog.get_by_role("status")).to_have_text("Saved.")
    shoot(page, "settings-skill")
    page.reload()
    page.get_by_role("button", name="Settings").click()
    dialog.get_by_text("Advanced: skills").click()
    dialog.get_by_text("Settings of weather").click()
    expect(dialog.get_by_label("City")).to_have_value("Bergen")
    expect(dialog.get_by_role("switch", name="Loud", exact=True)).to_be_checked()
    expect(dialog.get_by_label("Unit")).to_have_value("imperial")


@pytest.mark.browser
def test_the_form_can_be_read_on_a_phone_and_a_list_is_written_as_json(
    weathered: Any, open_page: Callable[..., Page], shoot: Any
) -> None:
    page = open_page(weathered.at(f"/play/{weathered.new_session()}"))
    page.set_viewport_size({"width": 390, "height": 844})
    page.get_by_role("button", name="Settings").click()
    dialog = page.get_by_role("dialog", name="Settings")
    dialog.get_by_text("Advanced: skills").click()
    dialog.get_by_text("Settings of weather").click()
    told = dialog.get_by_text("Where you are.").bounding_box()
    field = dialog.get_by_label("City").bounding_box()
    assert told is not None and field is not None
    assert told["width"] > 200 and field["width"] > 200, "neither is squeezed by the other"
    places = dialog.get_by_label("Places")
    expect(places).to_have_value('["sea"]')
    places.fill('["sea", "fjord"]')
    places.press("Tab")
    expect(dialog.get_by_role("status")).to_have_text("Saved.")
    places.fill("[sea")
    places.press("Tab")
    expect(dialog.get_by_role("alert")).to_contain_text("places")
    expect(places).to_have_value('["sea","fjord"]')
    shoot(page, "settings-skill-phone")

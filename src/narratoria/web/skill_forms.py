"""Settings of skills as the fields of a form, and what a person enters there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, cast

from narratoria.skills.skill_library import SkillLibrary
from narratoria.skills.skill_settings import SettingsInvalid, SkillSettings, shown
from narratoria.web.documents import SkillField

FieldKind = Literal["text", "secret", "number", "switch", "choice", "json"]
_KINDS: dict[Any, FieldKind] = {
    "string": "text",
    "number": "number",
    "integer": "number",
    "boolean": "switch",
}


def skill_fields(library: SkillLibrary, name: str) -> list[SkillField]:
    """Return the fields of a skill; none for one without settings, or whose file cannot be read."""
    settings = _settings(library, name)
    if settings is None:
        return []
    try:
        found = list(shown(settings))
    except SettingsInvalid:
        return []
    return [_field(settings, key, value, source) for key, value, source in found]


def _field(settings: SkillSettings, key: str, value: Any, source: str) -> SkillField:
    declared = settings.properties[key]
    declared = declared if isinstance(declared, dict) else {}
    options = declared.get("enum")
    kind: FieldKind = (
        "secret"
        if key in settings.secrets
        else "choice"
        if isinstance(options, list)
        else _KINDS.get(declared.get("type"), "json")
    )
    return SkillField(
        key=key,
        title=str(declared.get("title") or key),
        description=str(declared.get("description") or ""),
        kind=kind,
        value=value,
        source=cast(Literal["you", "the story", "default", "not set"], source),
        options=options if isinstance(options, list) else [],
    )


def change_skill(library: SkillLibrary, name: str, values: Mapping[str, Any]) -> None:
    """Set what a person entered; raise `SettingsInvalid` for what does not fit."""
    settings = _settings(library, name)
    if settings is None:
        raise SettingsInvalid(f"there is no skill {name!r} with settings in this story")
    settings.change(values)


def _settings(library: SkillLibrary, name: str) -> SkillSettings | None:
    for skill in library.skills:
        if skill.name == name and not skill.is_guide:
            return library.settings_of(skill)
    return None

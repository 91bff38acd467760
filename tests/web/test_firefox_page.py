"""The page in a real Firefox: three turns, every view, the settings and the search, without a complaint."""

from __future__ import annotations

from pathlib import Path

import pytest
from firefox import FIREFOX, running_firefox

from conftest import SCREENS, RunningServer

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        FIREFOX is None,
        reason="no Firefox here; install Debian's firefox-esr, or set NARRATORIA_FIREFOX",
    ),
]
ENDED = "document.querySelector('.turn.last .choice')?.checkVisibility()"


def test_a_story_can_be_played_in_firefox(server: RunningServer, tmp_path: Path) -> None:
    session = server.new_session("lighthouse")
    with running_firefox(tmp_path / "profile") as firefox:
        firefox.open(server.at(f"/play/{session}"))
        for turn in (1, 2, 3):
            if turn == 2:
                firefox.type("#prompt", "look\ue007")
            else:
                firefox.click(".turn.last .choice")
            firefox.wait_for(f"document.querySelector('[aria-label=\"Turn {turn}\"]') && {ENDED}")
        assert firefox.run("document.querySelectorAll('.turn .narration').length") >= 4
        for view in ("tools", "assets", "state", "narrative"):
            firefox.click(f'a[href="#{view}"]')
            firefox.wait_for(
                f"location.hash === '#{view}' && document.querySelector('main > :not([hidden])')"
            )
            assert firefox.run("document.documentElement.scrollWidth - innerWidth") <= 0
        firefox.wait_for("document.querySelector('.world')?.checkVisibility()")
        SCREENS.mkdir(parents=True, exist_ok=True)
        firefox.shoot(SCREENS / "firefox-narrative.png")
        firefox.click(".search-button")
        firefox.type("#search-field", "light")
        firefox.wait_for("document.querySelector('.search-hit')")
        firefox.shoot(SCREENS / "firefox-search.png")
        firefox.run("document.querySelector('dialog.search').close()")
        firefox.click('header.bar [aria-label="Settings"]')
        firefox.wait_for("document.querySelector('dialog.settings .options')")
        firefox.shoot(SCREENS / "firefox-settings.png")
        firefox.open(server.origin + "/")
        firefox.wait_for("document.querySelector('.saved-card')")
        firefox.shoot(SCREENS / "firefox-library.png")
        assert firefox.complaints(server.origin) == []

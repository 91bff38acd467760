"""The token that several servers share, and their figures."""

from __future__ import annotations

from narratoria.web.metrics import COUNTERS, GAUGES, OF_SHARES, Metrics
from narratoria.web.shared_token import SharedToken


def test_a_cookie_of_one_server_is_good_at_the_other_and_nowhere_else() -> None:
    one, two, stranger = SharedToken("secret"), SharedToken("secret"), SharedToken("other")
    cookie = one.exchange("secret")
    assert cookie is not None and two.of_browser(cookie) is not None and stranger.of_browser(cookie) is None
    assert one.exchange("wrong") is None and one.of_program("wrong") is None and one.of_program("ß") is None
    assert two.of_program("secret") is not None
    handed = one.new_token(of=one.of_browser(cookie))
    assert two.exchange(handed) is not None and two.of_browser(handed) is None, "a token is no cookie"
    assert (
        two.exchange(cookie) is None and one.of_browser(cookie + "0") is None and one.of_browser("") is None
    )


def test_cookies_and_tokens_end() -> None:
    now = [1_000.0]
    one = SharedToken("secret", clock=lambda: now[0])
    cookie = one.exchange("secret")
    token = one.new_token(of=one.of_browser(cookie))
    now[0] += 601
    assert one.exchange(token) is None and one.of_browser(cookie) is not None
    now[0] += 31 * 24 * 3600
    assert one.of_browser(cookie) is None


def test_signing_out_ends_the_streams_of_a_browser() -> None:
    one = SharedToken("secret")
    cookie = one.exchange("secret")
    known = one.of_browser(cookie)
    left: list[int] = []
    known.on_end.add(lambda: left.append(1))
    one.end(known)
    assert left == [1] and one.of_browser(cookie) is None


def test_figures_are_in_the_text_format() -> None:
    metrics = Metrics()
    metrics.add("takeovers")
    metrics.turn(0.2)
    metrics.turn(99)
    lines = metrics.render(dict.fromkeys([*GAUGES, *OF_SHARES], 1.5)).splitlines()
    assert "narratoria_takeovers_total 1" in lines and "narratoria_turns_total 2" in lines
    assert 'narratoria_turn_seconds_bucket{le="0.25"} 1' in lines
    assert (
        'narratoria_turn_seconds_bucket{le="+Inf"} 2' in lines and "narratoria_turn_seconds_count 2" in lines
    )
    assert "narratoria_peers 1.5" in lines
    assert (
        sum(line.startswith("# TYPE") for line in lines) == len(COUNTERS) + len(OF_SHARES) + len(GAUGES) + 1
    )
    assert "narratoria_turns_refused_total 1.5" in lines

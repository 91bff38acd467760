"""The bands of a standing."""

BANDS = ((50, "honoured"), (15, "friendly"), (-14, "neutral"), (-49, "wary"))


def banded(score):
    score = max(-100, min(100, round(score, 1)))
    score = int(score) if score == int(score) else score
    return {"score": score, "band": next((name for least, name in BANDS if score >= least), "hostile")}

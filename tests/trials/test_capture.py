from __future__ import annotations

from bisect_env.trials.capture import HEAD, TAIL, Capture


def test_short_output_is_kept_whole() -> None:
    capture = Capture()
    for piece in (b"one\n", "zw\u00f6lf".encode()[:3], "zw\u00f6lf".encode()[3:], b"\xff"):
        capture.take(piece)
    assert capture.text() == "one\nzw\u00f6lf\ufffd"
    assert capture.since(4) == "zw\u00f6lf\ufffd" and capture.since(capture.length) == ""


def test_the_middle_of_long_output_is_cut_and_the_cut_is_said() -> None:
    capture = Capture()
    capture.take(b"begin")
    for _ in range(200):
        capture.take(b"x" * 10_000)
    capture.take(b"end")
    text = capture.text()
    assert text.startswith("begin") and text.endswith("end")
    assert len(text) < HEAD + TAIL + 100
    assert f"[... {2_000_008 - HEAD - TAIL} characters left out ...]" in text


def test_patterns_are_found_in_what_is_cut_and_across_pieces() -> None:
    capture = Capture((r"loss is (nan|inf)", None, "never"))
    capture.take(b"a\n" * HEAD)
    capture.take(b"step 3: loss i")
    capture.take(b"s nan now\n")
    capture.take(b"b\n" * (2 * TAIL))
    assert "loss is nan" not in capture.text()
    assert capture.match(0) is not None and capture.match(0).startswith("step 3: loss is nan")  # type: ignore[union-attr]
    assert capture.match(1) is None and capture.match(2) is None

"""How a text becomes deltas."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reattach_mockserver.scenarios.pieces import split_text
from reattach_mockserver.scenarios.script import Split

SPLITS = st.one_of(st.sampled_from(["words", "lines", "whole"]), st.integers(1, 9))
TEXTS = st.text(
    st.one_of(st.characters(codec="utf-8"), st.sampled_from("\r\n \t\u2028\u0301\u200d\ufe0f🙂👩💻🏽🇩🇪\U000e0067"))
)


@given(text=TEXTS, split=SPLITS)
def test_pieces_put_together_are_the_text(text: str, split: Split) -> None:
    """Nothing is lost or added, however the text is cut, and no piece is empty."""
    pieces = split_text(text, split)
    assert "".join(pieces) == text
    assert all(pieces)


@given(text=TEXTS, split=SPLITS)
def test_no_piece_begins_inside_a_character(text: str, split: Split) -> None:
    """A piece never begins with a mark or a joiner, and CR LF is never parted."""
    pieces = split_text(text, split)
    for before, piece in itertools.pairwise(pieces):
        assert piece[0] not in "\u0301\u200d\ufe0f🏽\U000e0067", pieces
        assert before[-1] != "\u200d", pieces
        assert (before[-1], piece[0]) != ("\r", "\n"), pieces


@pytest.mark.parametrize(
    ("text", "split", "pieces"),
    [
        ("", "words", ()),
        ("one two  three ", "words", ("one ", "two  ", "three ")),
        (" lead", "words", (" ", "lead")),
        ("a\nb\r\nc\rd", "lines", ("a\n", "b\r\n", "c\r", "d")),
        ("a\u2028b\x0bc", "lines", ("a\u2028b\x0bc",)),
        ("a b", "whole", ("a b",)),
        ("abcde", 2, ("ab", "cd", "e")),
        ("a\r\nb\n\r", 1, ("a", "\r\n", "b", "\n", "\r")),
        ("🙂🙂a", 1, ("🙂", "🙂", "a")),
        ("e\u0301x", 1, ("e\u0301", "x")),
        ("👨\u200d👩\u200d👧👍🏽", 1, ("👨\u200d👩\u200d👧", "👍🏽")),
        ("🇩🇪🇫🇷🇮", 1, ("🇩🇪", "🇫🇷", "🇮")),
        ("1\ufe0f\u20e3", 1, ("1\ufe0f\u20e3",)),
    ],
)
def test_a_text_is_cut_as_it_says(text: str, split: Split, pieces: tuple[str, ...]) -> None:
    """Words keep the space after them; lines their ends; numbers count what a reader takes for characters."""
    assert split_text(text, split) == pieces

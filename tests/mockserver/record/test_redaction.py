"""Secrets are taken out, counted, and nothing else is touched."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reattach_mockserver.record.redaction import MASK, Redactor

KEY = "sk-" + "a1B2" * 8
JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLXBhcnQ"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n-----END RSA PRIVATE KEY-----"


def test_the_clients_own_token_goes_wherever_it_stands():
    """In texts, in the middle of one, as a name, as JSON in a text, as part of an address."""
    redactor = Redactor(["t/0 k+n"])
    value = {"a": ["t/0 k+n", {"b": 'say {"token": "t/0 k+n"}!'}], "t/0 k+n": 1, "url": "http://h/?k=t%2F0%20k%2Bn"}
    assert redactor.value(value) == {
        "a": [MASK, {"b": f'say {{"token": "{MASK}"}}!'}],
        MASK: 1,
        "url": f"http://h/?k={MASK}",
    }
    assert redactor.count == 4


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        (f"the key is {KEY}, keep it", f"the key is {MASK}, keep it"),
        (f"Authorization: Bearer {'x' * 40}", f"Authorization: Bearer {MASK}"),
        ("ghp_" + "a" * 36, MASK),
        ("github_pat_" + "a" * 40, MASK),
        ("glpat-" + "a" * 20, MASK),
        ("xoxb-1234567890-abcdef", MASK),
        ("id AKIAIOSFODNN7EXAMPLE.", f"id {MASK}."),
        ("AIza" + "a" * 35, MASK),
        ("hf_" + "a" * 34, MASK),
        (f"token={JWT}", f"token={MASK}"),
        (f"a\n{PEM}\nb", f"a\n{MASK}\nb"),
        ("postgresql://user:pa55@db/x", f"postgresql://{MASK}@db/x"),
    ],
)
def test_what_looks_like_a_secret_goes(text: str, clean: str):
    """Of a form that nothing else has; the words around it stay."""
    redactor = Redactor()
    assert (redactor.text(text), redactor.count) == (clean, 1)


@pytest.mark.parametrize(
    "name", ["Authorization", "api_key", "X-API-Key", "password", "client_secret", "refresh_token", "Set-Cookie"]
)
def test_a_text_under_the_name_of_a_secret_goes(name: str):
    """However the name is written; what is no text under it is looked into."""
    redactor = Redactor()
    assert redactor.value({"x": {name: "v", "y": 1}}) == {"x": {name: MASK, "y": 1}}
    assert redactor.value({name: {"z": 1}, "w": ""}) == {name: {"z": 1}, "w": ""}
    assert redactor.count == 1


@pytest.mark.parametrize(
    "value",
    [
        {"token": "Hello", "logprob": -0.5},
        {"max_tokens": 5, "password": None, "secret": ""},
        "sk-short, task-force, risk-averse-and-so-on",
        "the bearer of this letter",
        "http://127.0.0.1:8700/a@b",
        "mailto:a@b.example",
        {"usage": {"total_tokens": 7}, "id": "msg_0123456789abcdef0123456789abcdef"},
        [1, 2.5, True, None, "é🙂\u2028"],
    ],
)
def test_what_only_sounds_like_one_stays(value: object):
    """Byte for byte: a recording is worth nothing once its data are guessed at."""
    redactor = Redactor(["own-token"])
    assert json.dumps(redactor.value(value)) == json.dumps(value)
    assert redactor.count == 0


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=50, deadline=None)
@given(value=JSON, secret=st.text(alphabet="abc*", min_size=1, max_size=3).filter(lambda text: text not in MASK))
def test_no_value_keeps_the_own_token(value: object, secret: str):
    """Law: it is in no text and no name of what is written; and a value without it is unchanged."""
    before = json.dumps(value, ensure_ascii=False)
    after = Redactor([secret]).value(value)

    def texts(part: object) -> list[str]:
        match part:
            case str():
                return [part]
            case list():
                return [text for item in part for text in texts(item)]
            case dict():
                return [text for name, item in part.items() for text in (name, *texts(item))]
            case _:
                return []

    assert not any(secret in text for text in texts(after))
    assert json.dumps(value, ensure_ascii=False) == before, "what was given is not changed"
    if not any(secret in text for text in texts(value)):
        assert after == value


def test_names_that_become_equal_lose_nothing():
    """Two members whose names differ only by a secret are still two."""
    assert Redactor(["aa", "bb"]).value({"aa": 1, "bb": 2}) == {MASK: 1, MASK * 2: 2}


def test_a_secret_in_pieces_is_noticed():
    """Over the pieces of one text, beside those of others; a whole one in a single piece is none."""
    redactor = Redactor(["own-token"])
    for name, piece in [("m1", "it is own"), ("m2", "-token, or"), ("m1", "-to"), ("m1", "ken."), ("m3", "own-token")]:
        redactor.look_across(name, piece)
    assert redactor.spread == {"m1"}
    redactor.look_across("m2", " sk-abcdefghij")
    redactor.look_across("m2", "klmnopqrstuvwxyz")
    assert redactor.spread == {"m1", "m2"}


def test_looking_across_texts_keeps_little():
    """However many texts there are and however long they grow."""
    redactor = Redactor()
    for number in range(300):
        redactor.look_across(str(number), "x" * 2_000)
    assert len(redactor._tails) <= 256
    assert max(map(len, redactor._tails.values())) <= 512


def test_deep_values_are_no_trouble():
    value: object = "own-token"
    for _ in range(400):
        value = [{"x": value}]
    assert "own" not in json.dumps(Redactor(["own-token"]).value(value))


def test_a_secret_that_begins_with_another_goes_as_a_whole():
    """The rest of a longer token is as secret as its beginning."""
    assert Redactor(["abc", "abcdef"]).text("abcdef abc") == f"{MASK} {MASK}"

"""Recorded streams of real services, where they stand beside the checkout."""

import json
from pathlib import Path
from typing import Any

import pytest

from reattach_mockserver.scenarios.recording import Recording, load_recording

FOLDER = Path(__file__).parents[4] / "shared" / "recordings"
FILES = sorted(FOLDER.glob("*.jsonl")) if FOLDER.is_dir() else []

pytestmark = pytest.mark.skipif(not FILES, reason="needs the recorded streams beside the checkout")

# The public fixture itself was shortened: its deltas are the first words of what its end repeats.
SHORTENED = {"openai-responses.phase.1"}


def lines(path: Path) -> list[dict[str, Any]]:
    """Read the file again, by other means."""
    return [json.loads(line) for line in path.read_bytes().splitlines() if line.strip()]


def messages_of_the_end(recording: Recording) -> list[str]:
    """The texts that an OpenAI response repeats in its last event."""
    response: Any = recording.events[-1].data.get("response", {})
    items = response.get("output", [])
    return [
        "".join(part["text"] for part in item["content"] if part["type"] == "output_text")
        for item in items
        if item["type"] == "message"
    ]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_nothing_of_a_recording_is_lost_or_changed(path: Path):
    """Every line is an event, in order, equal to the line."""
    assert [event.data for event in load_recording(path).events] == lines(path)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_family_is_known_by_its_content(path: Path):
    """As the file's name says."""
    vendor = path.name.split(".")[0].replace("google-interactions", "gemini-interactions")
    assert load_recording(path).profile == vendor


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name.startswith("openai-responses")], ids=lambda path: path.stem
)
def test_the_text_found_is_what_the_end_repeats(path: Path):
    """OpenAI's last event holds the whole messages; put together they are the deltas that we took for text."""
    recording = load_recording(path)
    if recording.name in SHORTENED:
        first, second = messages_of_the_end(recording)
        assert recording.text.startswith(first[:6])
        assert recording.text.endswith(second[: len(recording.text) - 6])
    else:
        assert recording.text == "".join(messages_of_the_end(recording))


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.name.startswith("anthropic")], ids=lambda path: path.stem
)
def test_anthropic_text_is_that_of_its_text_blocks(path: Path):
    """Put together block by block, as the vendor's own accumulation does."""
    blocks: dict[int, str] = {}
    for event in lines(path):
        if event["type"] == "content_block_start" and event["content_block"]["type"] == "text":
            blocks[event["index"]] = event["content_block"]["text"]
        elif event["type"] == "content_block_delta" and event["index"] in blocks:
            blocks[event["index"]] += event["delta"].get("text", "")
    assert load_recording(path).text == "".join(text for _, text in sorted(blocks.items())) != ""


@pytest.mark.parametrize("path", [path for path in FILES if path.name.startswith("google")], ids=lambda path: path.stem)
def test_gemini_text_is_that_of_its_model_output(path: Path):
    """Put together step by step, from the steps that say they are output."""
    outputs = {event["index"] for event in lines(path) if event.get("step", {}).get("type") == "model_output"}
    deltas = [
        event["delta"] for event in lines(path) if event["event_type"] == "step.delta" and event["index"] in outputs
    ]
    assert load_recording(path).text == "".join(delta.get("text", "") for delta in deltas) != ""


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_real_streams_settle_as_they_did(path: Path):
    """One failed for want of quota, two wait for a person, the others completed."""
    ending = load_recording(path).ending
    if path.stem == "openai-responses.error.1":
        assert ending.problem is not None
        assert ending.problem.code == "insufficient_quota"
    elif path.stem in ("openai-responses.mcp-tool-approval.1", "openai-responses.mcp-tool-approval.3"):
        (action,) = ending.actions
        assert (action.tool, action.arguments["url"]) == ("create_short_url", "https://ai-sdk.dev/")
    else:
        assert (ending.status, ending.actions, ending.problem) == ("completed", (), None)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_real_stream_without_its_end_is_truncated(path: Path, tmp_path: Path):
    """Cut in half it is a failed run, never a short completed one."""
    content = path.read_bytes().splitlines(keepends=True)
    half = tmp_path / "half.jsonl"
    half.write_bytes(b"".join(content[: len(content) // 2]))
    problem = load_recording(half).ending.problem
    assert problem is not None
    assert problem.code == "recording_truncated"

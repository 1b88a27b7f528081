"""The agent run that `reattach demo` plays: a day of an invented shop, of any length.

A pure function of length and seed. Whatever the length, the run has what breaks readers of streams:
characters of two to four bytes in deltas, text of several lines, U+2028, nine tool calls with results,
changes of status, and one event of 64 KiB. What the demo does to the run is the chaos package's.

Checked by tests/mockserver/scenarios/test_demo.py.
"""

import random

from reattach_mockserver.scenarios.script import Blob, End, Limits, Say, Script, Status, Step, Tool

EVENTS = 132
LEAST_EVENTS = 40
TOOLS = 9
FRAME_EVENTS = 3
"""Of every run, a recording's too: `run.created`, `run.started` and the settling event are the engine's."""

_PLAY_MS = 800  # the whole run takes about a second
_WORDS = (
    "order", "shelf", "invoice", "customs", "Müsli", "café", "façade", "Größe", "naïve", "Жук", "зима", "λόγος",
    "שלום", "سلام", "नमस्ते", "東京", "注文", "한국", "€9.99", "→", "✓", "🙂", "🚚", "📦", "👩🏽\u200d💻", "🇩🇪", "𝄞",
)  # fmt: skip
_LINES = "Packing list:\n  – 1 × Müsli 🥣\n\n  – 2 × 緑茶\u2028    (one of them is a gift 🎁)\r\nThat is all.\n"


def demo_script(events: int = EVENTS, seed: int = 7) -> Script:
    """Return a script whose run has exactly `events` events, those that the engine appends by itself included.

    Those are `run.created`, `run.started` and the settling event.

    Args:
        events: At least 40, so that everything that the run is to have finds its place.
        seed: Decides words and order.

    Raises:
        ValueError: `events` is below 40.
    """
    if events < LEAST_EVENTS:
        raise ValueError(f"a demo of {events} events has no room for its parts; expected at least {LEAST_EVENTS}")
    rng = random.Random(f"demo {seed}")
    every_ms = _PLAY_MS // events
    fixed = _fixed(rng, every_ms)
    talk = _talk(rng, events - FRAME_EVENTS - sum(count for _, count in fixed), every_ms)
    steps: list[Step] = []
    for index, (step, _) in enumerate(fixed):
        # The talk is spread evenly between the fixed parts, which keep their order.
        steps += talk[index * len(talk) // len(fixed) : (index + 1) * len(talk) // len(fixed)]
        steps.append(step)
    steps.append(End(status="completed", result={"shipped": 41, "note": "fertig ✓"}))
    return Script(name="demo", seed=seed, limits=Limits(heartbeat_ms=150), steps=tuple(steps))


def _fixed(rng: random.Random, every_ms: int) -> list[tuple[Step, int]]:
    """Return what every demo has, each with the number of its events."""
    tools = [(_tool(rng, number), 2) for number in range(1, TOOLS + 1)]
    return [
        (Status(text="reading the order"), 1),
        *tools[:2],
        (Say(text=_LINES, split="lines", every_ms=every_ms), 6),
        *tools[2:4],
        (Status(text="packing 📦"), 1),
        *tools[4:6],
        (Blob(bytes=65536, type="report"), 1),
        (Say(text="Family 👨\u200d👩\u200d👧\u200d👦 of 𠀋, e\u0301 and U+2028:\u2028!", split="whole"), 2),
        (Status(text="waiting for the courier"), 1),
        *tools[6:],
        (Status(text="done ✓"), 1),
    ]


def _tool(rng: random.Random, number: int) -> Tool:
    names = (
        "read_order",
        "reserve",
        "charge_card",
        "print_label",
        "weigh",
        "book_courier",
        "send_mail",
        "track",
        "file",
    )
    return Tool(
        tool=names[number - 1],
        id=f"call_{number}",
        arguments={"order": 41, "note": rng.choice(_WORDS)},
        takes_ms=10,
        result={"ok": True, "text": f"{rng.choice(_WORDS)} {rng.choice(_WORDS)}"},
        reversible=number != 7,
    )


def _talk(rng: random.Random, events: int, every_ms: int) -> list[Step]:
    """Return steps of exactly so many events: messages of 3 to 14 words, a delta a word and one completion."""
    steps: list[Step] = []
    while events:
        # One event that is left over would be no message: a message has two at least.
        count = next(count for count in (rng.randint(4, 15), *range(4, 16)) if events - count != 1)
        count = min(count, events)
        if count == 1:
            steps.append(Status(text="…"))
        else:
            words = " ".join(rng.choice(_WORDS) for _ in range(count - 1))
            steps.append(Say(text=words, split="words", every_ms=every_ms))
        events -= count
    return steps

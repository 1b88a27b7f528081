"""OpenTelemetry: a span a run, what happened to its connection as the span's events, and how long an event takes.

pip install opentelemetry-sdk
python examples/08_opentelemetry.py
"""

import sys

from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor

import reattach

URL = sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8700"
JOURNAL = sys.argv[2] if len(sys.argv) > 2 else "runs.db"


class Telemetry:
    """An observer: called in whichever thread found the fact, so it only hands on."""

    def __init__(self) -> None:
        self._tracer = trace.get_tracer("reattach")
        meter = metrics.get_meter("reattach")
        self._events = meter.create_counter("reattach.events", description="by stage: received, committed, applied")
        self._delay = meter.create_histogram(
            "reattach.commit_delay", unit="s", description="from the network to the disk"
        )
        self._spans: dict[str, trace.Span] = {}
        self._received: dict[str, float] = {}

    def __call__(self, fact: reattach.Fact) -> None:
        at = int(fact.at.timestamp() * 1e9)
        match fact.name:
            case "received" | "committed" | "applied":
                self._events.add(fact.count, {"stage": fact.name})
                if fact.name == "received":
                    self._received.setdefault(fact.run_id, fact.at.timestamp())
                elif fact.name == "committed" and (since := self._received.pop(fact.run_id, None)) is not None:
                    self._delay.record(fact.at.timestamp() - since)
                return
            case "attach" if fact.run_id not in self._spans:
                attributes = {"reattach.run_id": fact.run_id}
                self._spans[fact.run_id] = self._tracer.start_span(
                    "follow a run", None, attributes=attributes, start_time=at
                )
        span = self._spans.get(fact.run_id)
        if span is None:
            return
        span.add_event(fact.name, {"detail": fact.detail, "cursor": fact.cursor or "", "attempt": fact.attempt}, at)
        if fact.name in ("finished", "failed"):
            span.set_status(trace.StatusCode.OK if fact.name == "finished" else trace.StatusCode.ERROR)
            self._spans.pop(fact.run_id).end(at)


def line(span: ReadableSpan) -> str:
    return f"span {span.name!r}: {', '.join(event.name for event in span.events)}\n"


spans = TracerProvider()
spans.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(formatter=line)))
trace.set_tracer_provider(spans)
reader = InMemoryMetricReader()
metrics.set_meter_provider(MeterProvider([reader]))

with reattach.Client(URL, JOURNAL, observer=Telemetry()) as client:
    for _event in client.start("hello", key="traced-1"):
        pass  # your handler
data = reader.get_metrics_data()
for resource in data.resource_metrics if data else ():  # run again, everything is on disk: nothing happens any more
    for metric in resource.scope_metrics[0].metrics:
        for point in metric.data.data_points:
            print(f"metric {metric.name} {dict(point.attributes)} {getattr(point, 'value', None) or point.count}")

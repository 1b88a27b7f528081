// npm's `eventsource`, the package that most Node programs use: it reconnects by itself, after the last id.
//
//     npm install eventsource && reattach chaos run --client 'node examples/clients/eventsource.mjs' --faults fin,rst
//
// It knows no silence: with `--faults stall` it is found to hang. An answer that is not 200 with an event stream it takes as the end
// for good: with `--faults busy,wrong-type` it is found to give up.
import { EventSource } from "eventsource";

const { REATTACH_EVENTS_URL, REATTACH_TOKEN, REATTACH_EVENT_TYPES } = process.env;
const say = (line) => process.stdout.write(JSON.stringify(line) + "\n");
const source = new EventSource(REATTACH_EVENTS_URL, {
  fetch: (url, init) =>
    fetch(url, { ...init, headers: { ...init.headers, Authorization: `Bearer ${REATTACH_TOKEN}` } }),
});
source.addEventListener("error", (error) => {
  if (source.readyState === EventSource.CLOSED) say({ kind: "error", message: error.message });
});
for (const type of REATTACH_EVENT_TYPES.split(",")) {
  source.addEventListener(type, (event) => {
    say({ kind: "rendered", id: event.lastEventId, data: JSON.parse(event.data) });
    const end = /^run\.(completed|failed|cancelled|paused)$/.exec(event.type);
    if (end) {
      say({ kind: "finished", status: end[1] });
      source.close();
    }
  });
}

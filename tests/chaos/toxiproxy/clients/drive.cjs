// Drives a Toxiproxy server with its Node client, all that the client has; prints what came of each step as a line of JSON.
// Run: NODE_PATH=…/node_modules node drive.cjs URL UPSTREAM
const { Toxiproxy } = require("toxiproxy-node-client");

const [url, upstream] = process.argv.slice(2);
const say = (step, value) => console.log(JSON.stringify([step, value]));

async function main() {
  const toxiproxy = new Toxiproxy(url);
  const body = { name: "node", listen: "127.0.0.1:0", upstream };
  const proxy = await toxiproxy.createProxy(body);
  say("create", [proxy.name, proxy.upstream, proxy.enabled, /^127\.0\.0\.1:[1-9]\d*$/.test(proxy.listen)]);
  await toxiproxy.createProxy(body).catch((error) => say("again", error.constructor.name));
  const toxic = await proxy.addToxic({
    name: "cut", type: "limit_data", stream: "downstream", toxicity: 1, attributes: { bytes: 10 },
  });
  say("addToxic", toxic.toJson());
  const updated = await toxic.update({ ...toxic.toJson(), attributes: { bytes: 5 } });
  say("update", updated.attributes);
  say("getToxic", (await proxy.getToxic("cut")).attributes);
  say("get", (await toxiproxy.get("node")).toJson().name);
  say("getAll", Object.keys(await toxiproxy.getAll()));
  await updated.remove();
  await proxy.getToxic("cut").catch((error) => say("gone", error.constructor.name));
  say("disable", (await proxy.update({ ...proxy.toJson(), enabled: false })).enabled);
  await toxiproxy.reset();
  say("reset", (await toxiproxy.get("node")).enabled);
  say("populate", Object.keys(await toxiproxy.populate([{ name: "more", listen: "127.0.0.1:0", upstream }])));
  await (await toxiproxy.get("more")).remove();
  await proxy.remove();
  say("removed", Object.keys(await toxiproxy.getAll()));
  const version = await toxiproxy.getVersion();
  say("version", typeof (version.version ?? version));
}

main().catch((error) => { console.error(error); process.exit(1); });

// Fills in what only a running app knows: where it is, how fast it answers, which request this was.
"use strict";

const show = (id, text) => { if (text) document.getElementById(id).textContent = text; };

// Apps live on names below .localhost, the API on localhost itself, both on one port.
function apiAddress() {
  if (!location.hostname.endsWith(".localhost")) return null;
  return `${location.protocol}//localhost${location.port ? ":" + location.port : ""}`;
}

async function roundTrip() {
  const begin = performance.now();
  const answer = await fetch("favicon.svg", { cache: "no-store" });
  await answer.arrayBuffer();
  return { ms: performance.now() - begin, request: answer.headers.get("x-vcap-request-id") };
}

// The best of several is the time of the path itself; the first also pays for the connection.
async function measure(times) {
  const trips = [];
  for (let i = 0; i < times; i++) trips.push(await roundTrip());
  const best = Math.min(...trips.map((trip) => trip.ms));
  show("trip", `${best.toFixed(1)} ms, best of ${times}`);
  show("request", trips[times - 1].request);
}

show("api", apiAddress());
show("host", location.host);
measure(10).catch(() => show("trip", "no answer"));

// A web app on Node's standard library.
//
// It listens on $PORT, logs requests to stdout and trouble to stderr, and on SIGTERM finishes what it is answering.
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { setTimeout: sleep } = require("node:timers/promises");

const read = (name) => fs.readFileSync(path.join(__dirname, name), "utf8");
const page = read("page.html");
const style = read("style.css");
const name = JSON.parse(process.env.VCAP_APPLICATION || "{}").application_name || "hello-node";
const index = process.env.CF_INSTANCE_INDEX || "0";
const host = process.env.VCAP_APP_HOST || "0.0.0.0";
const port = Number(process.env.PORT || 8080);
const secret = /VCAP_SERVICES|DATABASE_URL|PASSWORD|SECRET|TOKEN|KEY|CREDENTIAL/i;
const drainMs = 9000; // the platform kills ten seconds after SIGTERM

let visits = 0;
let stopping = false;

const text = (body, status = 200) => ({ status, type: "text/plain; charset=utf-8", body });
const escape = (value) => String(value).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

// A page for browsers, one line for curl.
function home(request) {
  visits++;
  if (!(request.headers.accept || "").includes("text/html")) {
    return text(`hello from ${name}: instance ${index}, visit ${visits}\n`);
  }
  const facts = {
    name, index, visits,
    runtime: `Node ${process.versions.node}`,
    uptime: `${Math.floor(process.uptime())}s`,
    memory: process.env.MEMORY_LIMIT || "none",
  };
  const body = page.replace(/{{(\w+)}}/g, (_, key) => escape(facts[key]));
  return { status: 200, type: "text/html; charset=utf-8", body };
}

// The variables by name, one a line, with secrets hidden.
function environment() {
  const lines = Object.entries(process.env).map(([key, value]) => `${key}=${secret.test(key) ? "(hidden)" : value}\n`);
  return text(lines.sort().join(""));
}

async function slow(url) {
  const asked = url.searchParams.get("ms") || "";
  const ms = /^\d+$/.test(asked) && Number(asked) <= 30000 ? Number(asked) : 2000;
  console.log(`answering in ${ms} ms`);
  await sleep(ms);
  return text(`slept ${ms} ms\n`);
}

async function answer(request, url) {
  switch (url.pathname) {
    case "/": return home(request);
    case "/health": return text("ok\n");
    case "/env": return environment();
    case "/slow": return slow(url);
    case "/crash": return { ...text("crashing\n"), crash: true };
    case "/style.css": return { status: 200, type: "text/css; charset=utf-8", body: style };
  }
  console.error(`no such page: ${JSON.stringify(url.pathname)}`);
  return text("no such page\n", 404);
}

function crash() {
  console.error(`${name}: instance ${index} was asked to crash`);
  process.exit(1);
}

async function serve(request, response) {
  const begin = process.hrtime.bigint();
  const pathname = request.url.split("?")[0];
  const url = new URL("http://app");
  url.pathname = pathname;
  url.search = request.url.slice(pathname.length);
  request.resume();
  const got = await answer(request, url);
  response.writeHead(got.status, {
    "Content-Type": got.type,
    "Content-Length": Buffer.byteLength(got.body),
    "Vary": "Accept",
    ...(stopping && { Connection: "close" }),
  });
  response.end(got.body, got.crash ? crash : undefined);
  if (pathname !== "/health") {
    console.log(`${request.method} ${pathname} ${got.status} ${(process.hrtime.bigint() - begin) / 1000n}µs`);
  }
}

const server = http.createServer((request, response) => {
  serve(request, response).catch((err) => {
    console.error(err);
    response.destroy();
  });
});
server.keepAliveTimeout = 60000;

function stop() {
  if (stopping) return;
  stopping = true;
  console.log(`${name}: instance ${index} stopping`);
  server.close();
  server.closeIdleConnections();
  setTimeout(() => {
    console.error("requests were still in flight");
    process.exit(1);
  }, drainMs).unref();
}

process.on("SIGTERM", stop);
process.on("SIGINT", stop);
server.listen(port, host, () => console.log(`${name}: instance ${index} listening on ${host}:${port}`));

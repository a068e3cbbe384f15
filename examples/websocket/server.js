// A websocket echo at /ws, and a page to try it.
//
// It listens on $PORT, logs to stdout, trouble to stderr, and on SIGTERM tells every client goodbye (1001).
"use strict";

const fs = require("node:fs");
const http = require("node:http");
const path = require("node:path");
const { accept } = require("./websocket");

const name = JSON.parse(process.env.VCAP_APPLICATION || "{}").application_name || "hello-websocket";
const index = process.env.CF_INSTANCE_INDEX || "0";
const host = process.env.VCAP_APP_HOST || "0.0.0.0";
const port = Number(process.env.PORT || 8080);
const drainMs = 9000; // the platform kills ten seconds after SIGTERM

const file = (name, type) => ({ status: 200, type: `${type}; charset=utf-8`, body: fs.readFileSync(path.join(__dirname, name), "utf8") });
const text = (body, status = 200) => ({ status, type: "text/plain; charset=utf-8", body });
const escape = (value) => String(value).replace(/[&<>"]/g, (c) => `&#${c.charCodeAt(0)};`);

const page = file("page.html", "text/html");
page.body = page.body.replace(/{{(\w+)}}/g, (_, key) => escape({ name, index }[key]));
const pages = new Map([
  ["/", page],
  ["/style.css", file("style.css", "text/css")],
  ["/client.js", file("client.js", "text/javascript")],
  ["/health", text("ok\n")],
  ["/crash", { ...text("crashing\n"), crash: true }],
  ["/ws", text("speak websocket here\n", 426)],
]);
const clients = new Set();

function crash() {
  console.error(`${name}: instance ${index} was asked to crash`);
  process.exit(1);
}

// A page for browsers, one line for curl.
function answer(request, pathname) {
  if (pathname === "/" && !(request.headers.accept || "").includes("text/html")) {
    return text(`hello from ${name}: instance ${index}, ${clients.size} connected\n`);
  }
  const got = pages.get(pathname);
  if (!got) console.error(`no such page: ${JSON.stringify(pathname)}`);
  return got || text("no such page\n", 404);
}

const server = http.createServer((request, response) => {
  const pathname = request.url.split("?")[0];
  const got = answer(request, pathname);
  request.resume();
  response.writeHead(got.status, {
    "Content-Type": got.type,
    "Content-Length": Buffer.byteLength(got.body),
    "Vary": "Accept",
    ...(got.status === 426 && { Connection: "Upgrade", Upgrade: "websocket" }),
  });
  response.end(got.body, got.crash ? crash : undefined);
  if (pathname !== "/health") console.log(`${request.method} ${pathname} ${got.status}`);
});
server.keepAliveTimeout = 60000;

server.on("upgrade", (request, socket, head) => {
  socket.on("error", () => socket.destroy());
  if (request.url.split("?")[0] !== "/ws") {
    socket.end("HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n");
    return;
  }
  const client = accept(request, socket, head);
  if (!client) return;
  let messages = 0;
  clients.add(client);
  console.log(`websocket opened, ${clients.size} connected`);
  client.on("message", (bytes, isText) => {
    messages++;
    client.send(bytes, isText);
  });
  client.on("close", (code) => {
    clients.delete(client);
    console.log(`websocket closed with ${code} after ${messages} messages, ${clients.size} connected`);
  });
});

let stopping = false;
function stop() {
  if (stopping) return;
  stopping = true;
  console.log(`${name}: instance ${index} stopping`);
  server.close();
  server.closeIdleConnections();
  for (const client of clients) client.close(1001, "going away");
  setTimeout(() => process.exit(1), drainMs).unref();
}

process.on("SIGTERM", stop);
process.on("SIGINT", stop);
server.listen(port, host, () => console.log(`${name}: instance ${index} listening on ${host}:${port}`));

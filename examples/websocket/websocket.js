// The server's side of RFC 6455: the handshake, and a connection that speaks frames.
"use strict";

const { createHash } = require("node:crypto");
const { EventEmitter } = require("node:events");

const MAX_MESSAGE = 1024 * 1024; // bytes
const CLOSE_MS = 2000; // how long the other side may take to answer a close
const OP = { more: 0x0, text: 0x1, binary: 0x2, close: 0x8, ping: 0x9, pong: 0xa };

// A breach of the protocol, with the status code that section 7.4.1 has for it.
class ProtocolError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

const broken = (message) => new ProtocolError(1002, message);
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

// The text of the bytes; bytes that are not UTF-8 end the connection with 1007.
function decode(bytes) {
  try {
    return utf8.decode(bytes);
  } catch {
    throw new ProtocolError(1007, "text is not UTF-8");
  }
}

function refuse(socket, status, headers = "") {
  socket.end(`HTTP/1.1 ${status}\r\nConnection: close\r\nContent-Length: 0\r\n${headers}\r\n`);
  return null;
}

// Answers an upgrade request with a Connection, or refuses it and returns null.
function accept(request, socket, head) {
  const { headers } = request;
  const has = (name, token) => (headers[name] || "").toLowerCase().split(/\s*,\s*/).includes(token);
  const key = headers["sec-websocket-key"] || "";
  if (request.method !== "GET" || !has("upgrade", "websocket") || !has("connection", "upgrade")) {
    return refuse(socket, "400 Bad Request");
  }
  if (headers["sec-websocket-version"] !== "13") {
    return refuse(socket, "426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n");
  }
  if (Buffer.from(key, "base64").length !== 16) return refuse(socket, "400 Bad Request");

  const proof = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${proof}\r\n\r\n`);
  return new Connection(socket, head);
}

// Emits "message" (bytes, isText) and, once and last, "close" (code).
class Connection extends EventEmitter {
  constructor(socket, head) {
    super();
    this.socket = socket;
    this.pending = head; // bytes of frames that are not yet whole
    this.parts = []; // payloads of the message that is coming in
    this.kind = null; // its opcode, null between messages
    this.code = 1006; // "closed abnormally", until a close frame says otherwise
    this.closing = false;
    socket.setNoDelay(true);
    socket.setTimeout(0);
    socket.on("data", (bytes) => this.receive(bytes));
    socket.on("drain", () => socket.resume());
    socket.on("error", () => socket.destroy());
    socket.on("end", () => socket.end());
    socket.on("close", () => this.emit("close", this.code));
    setImmediate(() => this.receive(Buffer.alloc(0))); // frames may have come with the handshake
  }

  send(bytes, isText) {
    this.write(isText ? OP.text : OP.binary, Buffer.from(bytes));
  }

  // Says goodbye once; the socket ends when the other side has answered, or soon in any case.
  close(code, reason = "") {
    if (this.closing) return;
    this.write(OP.close, code ? Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason)]) : Buffer.alloc(0));
    this.closing = true;
    setTimeout(() => this.socket.destroy(), CLOSE_MS).unref();
  }

  write(opcode, payload) {
    if (this.closing || !this.socket.writable) return;
    // A client that does not read must not fill this process's memory.
    if (!this.socket.write(Buffer.concat([header(opcode, payload.length), payload]))) this.socket.pause();
  }

  receive(bytes) {
    if (this.done) return;
    this.pending = this.pending.length ? Buffer.concat([this.pending, bytes]) : bytes;
    try {
      for (let frame; !this.done && (frame = parse(this.pending)); ) {
        this.pending = this.pending.subarray(frame.size);
        this.handle(frame);
      }
    } catch (err) {
      if (!(err instanceof ProtocolError)) throw err;
      this.fail(err);
    }
  }

  handle({ fin, opcode, payload }) {
    switch (opcode) {
      case OP.close: return this.closed(payload);
      case OP.ping: return this.write(OP.pong, payload);
      case OP.pong: return undefined;
      case OP.more:
        if (this.kind === null) throw broken("continuation of nothing");
        break;
      default:
        if (this.kind !== null) throw broken("message within a message");
        this.kind = opcode;
    }
    this.parts.push(payload);
    if (this.parts.reduce((sum, part) => sum + part.length, 0) > MAX_MESSAGE) throw new ProtocolError(1009, "message too long");
    if (fin) this.deliver();
  }

  deliver() {
    const message = this.parts.length === 1 ? this.parts[0] : Buffer.concat(this.parts);
    const isText = this.kind === OP.text;
    this.parts = [];
    this.kind = null;
    if (isText) decode(message);
    this.emit("message", message, isText);
  }

  // The other side's goodbye: answered with its own code, unless it is the answer to ours.
  closed(payload) {
    this.code = closeCode(payload);
    this.close(this.code === 1005 ? undefined : this.code);
    this.finish();
  }

  fail(err) {
    this.code = err.code;
    this.close(err.code, err.message);
    this.finish();
  }

  finish() {
    this.done = true;
    this.socket.end();
    this.socket.resume(); // what still comes is read past, so that the socket can end
  }
}

// The first frame in the bytes, or null when it is not whole yet.
function parse(bytes) {
  if (bytes.length < 2) return null;
  const fin = (bytes[0] & 0x80) !== 0;
  const opcode = bytes[0] & 0x0f;
  if (bytes[0] & 0x70) throw broken("reserved bit set");
  if (!Object.values(OP).includes(opcode)) throw broken("unknown opcode");
  if (!(bytes[1] & 0x80)) throw broken("frame is not masked");

  const short = bytes[1] & 0x7f;
  if (opcode >= OP.close && (!fin || short > 125)) throw broken("control frame split or too long");
  const start = 2 + (short === 127 ? 8 : short === 126 ? 2 : 0); // of the mask
  if (bytes.length < start) return null;
  const length = short === 127 ? bytes.readBigUInt64BE(2) : short === 126 ? bytes.readUInt16BE(2) : short;
  if (length > MAX_MESSAGE) throw new ProtocolError(1009, "message too long");

  const size = start + 4 + Number(length);
  if (bytes.length < size) return null;
  const payload = Buffer.from(bytes.subarray(start + 4, size));
  for (let i = 0; i < payload.length; i++) payload[i] ^= bytes[start + (i & 3)];
  return { fin, opcode, payload, size };
}

// The first bytes of a whole, unmasked frame.
function header(opcode, length) {
  const first = 0x80 | opcode;
  if (length < 126) return Buffer.from([first, length]);
  if (length < 65536) return Buffer.from([first, 126, length >> 8, length & 0xff]);
  const bytes = Buffer.alloc(10);
  bytes.set([first, 127]);
  bytes.writeBigUInt64BE(BigInt(length), 2);
  return bytes;
}

// The code in a close frame, 1005 when it has none (section 7.4).
function closeCode(payload) {
  if (payload.length === 0) return 1005;
  if (payload.length === 1) throw broken("close frame of one byte");
  const code = payload.readUInt16BE(0);
  const known = (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);
  if (!known) throw broken("no such close code");
  decode(payload.subarray(2));
  return code;
}

module.exports = { accept };

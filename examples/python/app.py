"""A web app on Python's standard library.

It listens on $PORT, logs requests to stdout and trouble to stderr, and on SIGTERM finishes what it is answering.
"""

import html
import json
import os
import pathlib
import platform
import re
import signal
import string
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

HERE = pathlib.Path(__file__).parent
PAGE = string.Template((HERE / "page.html").read_text(encoding="utf-8"))
STYLE = (HERE / "style.css").read_bytes()
START = time.monotonic()
NAME = json.loads(os.environ.get("VCAP_APPLICATION") or "{}").get("application_name", "hello-python")
INDEX = os.environ.get("CF_INSTANCE_INDEX", "0")
SECRET = re.compile("VCAP_SERVICES|DATABASE_URL|PASSWORD|SECRET|TOKEN|KEY|CREDENTIAL", re.IGNORECASE)
DRAIN_SECONDS = 9  # the platform kills ten seconds after SIGTERM


def log(line, file=sys.stdout):
    print(line, file=file, flush=True)


class Server(ThreadingHTTPServer):
    """Knows how many requests are in flight, so that a stop can wait for them and for nothing else."""

    request_queue_size = 128

    def __init__(self, address):
        super().__init__(address, Handler)
        self.changed = threading.Condition()
        self.in_flight = 0
        self.visits = 0
        self.stopping = False

    def count(self, change):
        with self.changed:
            self.in_flight += change
            self.changed.notify_all()

    def visit(self):
        with self.changed:
            self.visits += 1
            return self.visits

    def drain(self):
        with self.changed:
            return self.changed.wait_for(lambda: self.in_flight == 0, DRAIN_SECONDS)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 60  # seconds a connection may lie idle

    def do_GET(self):
        self.server.count(+1)
        try:
            self.answer(urlsplit(self.path))
        finally:
            self.server.count(-1)

    do_HEAD = do_GET

    def do_POST(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.do_GET()

    def answer(self, url):
        if url.path == "/":
            self.home()
        elif url.path == "/health":
            self.text("ok\n")
        elif url.path == "/env":
            self.text(environment())
        elif url.path == "/slow":
            self.text(slow(parse_qs(url.query).get("ms", ["2000"])[0]))
        elif url.path == "/crash":
            self.crash()
        elif url.path == "/style.css":
            self.send(200, "text/css; charset=utf-8", STYLE)
        else:
            log(f"no such page: {url.path!r}", sys.stderr)
            self.text("no such page\n", status=404)

    def home(self):
        """A page for browsers, one line for curl."""
        visits = self.server.visit()
        if "text/html" not in self.headers.get("Accept", ""):
            self.text(f"hello from {NAME}: instance {INDEX}, visit {visits}\n")
            return
        page = PAGE.substitute(
            name=html.escape(NAME),
            index=html.escape(INDEX),
            runtime=f"Python {platform.python_version()}",
            visits=visits,
            uptime=f"{int(time.monotonic() - START)}s",
            memory=html.escape(os.environ.get("MEMORY_LIMIT", "none")),
        )
        self.send(200, "text/html; charset=utf-8", page.encode())

    def crash(self):
        self.close_connection = True
        self.text("crashing\n")
        self.wfile.flush()
        log(f"{NAME}: instance {INDEX} was asked to crash", sys.stderr)
        os._exit(1)

    def text(self, body, status=200):
        self.send(status, "text/plain; charset=utf-8", body.encode())

    def send(self, status, kind, body):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Vary", "Accept")
        if self.server.stopping:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_request(self, code="-", size="-"):
        path = urlsplit(self.path).path
        if path != "/health":
            log(f"{self.command} {path} {int(code)}")

    def log_message(self, format, *args):
        log(format % args, sys.stderr)


def environment():
    """The variables by name, one a line, with secrets hidden."""
    shown = {name: "(hidden)" if SECRET.search(name) else value for name, value in os.environ.items()}
    return "".join(f"{name}={shown[name]}\n" for name in sorted(shown))


def slow(asked):
    ms = int(asked) if asked.isdecimal() and int(asked) <= 30000 else 2000
    log(f"answering in {ms} ms")
    time.sleep(ms / 1000)
    return f"slept {ms} ms\n"


def main():
    host, port = os.environ.get("VCAP_APP_HOST", "0.0.0.0"), int(os.environ.get("PORT", "8080"))
    server = Server((host, port))

    def stop():
        signal.sigwait(stops)
        server.stopping = True
        server.shutdown()

    stops = {signal.SIGTERM, signal.SIGINT}
    # Blocked, they wait until a thread takes them: no handler interrupts what holds a lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    threading.Thread(target=stop, daemon=True).start()
    log(f"{NAME}: instance {INDEX} listening on {host}:{port}")
    server.serve_forever()
    log(f"{NAME}: instance {INDEX} stopping")
    server.socket.close()
    if not server.drain():
        log("requests were still in flight", sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()

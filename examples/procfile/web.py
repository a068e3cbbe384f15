"""The web process: the present second taken apart, or the number asked for with ?n=."""

import html
import json
import os
import pathlib
import signal
import string
import sys
import threading
import time
from socketserver import ThreadingMixIn
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from factors import LIMIT, sentence

HERE = pathlib.Path(__file__).parent
PAGE = string.Template((HERE / "page.html").read_text(encoding="utf-8"))
STYLE = (HERE / "style.css").read_text(encoding="utf-8")
NAME = json.loads(os.environ.get("VCAP_APPLICATION") or "{}").get("application_name", "hello-procfile")
INDEX = os.environ.get("CF_INSTANCE_INDEX", "0")


class Server(ThreadingMixIn, WSGIServer):
    """One thread a request; closing it waits for those that still run."""

    daemon_threads = False
    request_queue_size = 128


class Handler(WSGIRequestHandler):
    timeout = 5  # seconds a client may take to send its request

    def log_request(self, code="-", size="-"):
        path = self.path.split("?")[0]
        if path != "/health":
            print(f"{self.command} {path} {code}", flush=True)

    def log_message(self, format, *args):
        print(format % args, file=sys.stderr, flush=True)


def app(environ, start_response):
    status, kind, body, after = answer(environ)
    payload = body.encode()
    headers = [("Content-Type", f"{kind}; charset=utf-8"), ("Content-Length", str(len(payload))), ("Vary", "Accept")]
    start_response(status, headers)
    yield b"" if environ["REQUEST_METHOD"] == "HEAD" else payload
    if after:
        after()


def answer(environ):
    path = environ["PATH_INFO"]
    if path == "/":
        return home(environ)
    if path == "/health":
        return text("ok\n")
    if path == "/crash":
        return text("crashing\n", after=crash)
    if path == "/style.css":
        return "200 OK", "text/css", STYLE, None
    print(f"no such page: {path!r}", file=sys.stderr, flush=True)
    return text("no such page\n", "404 Not Found")


def home(environ):
    """A page for browsers, one line for curl."""
    asked = parse_qs(environ["QUERY_STRING"]).get("n", [""])[0]
    number = int(time.time())
    if asked.isascii() and asked.isdecimal() and len(asked) <= 13 and 1 <= int(asked) <= LIMIT:
        number = int(asked)
    if "text/html" not in environ.get("HTTP_ACCEPT", ""):
        return text(f"hello from {NAME}: instance {INDEX}, {sentence(number)}\n")
    heading = sentence(number).replace(" ×", "\N{NO-BREAK SPACE}×")  # no line begins with a sign
    shown = {"name": NAME, "index": INDEX, "sentence": heading, "number": number, "limit": LIMIT}
    page = PAGE.substitute({key: html.escape(str(value)) for key, value in shown.items()})
    return "200 OK", "text/html", page, None


def crash():
    print(f"{NAME}: instance {INDEX} was asked to crash", file=sys.stderr, flush=True)
    os._exit(1)


def text(body, status="200 OK", after=None):
    return status, "text/plain", body, after


def main():
    host, port = os.environ.get("VCAP_APP_HOST", "0.0.0.0"), int(os.environ.get("PORT", "8080"))
    server = Server((host, port), Handler)
    server.set_app(app)

    def stop():
        signal.sigwait(stops)
        server.shutdown()

    stops = {signal.SIGTERM, signal.SIGINT}
    # Blocked, they wait until a thread takes them: no handler interrupts what holds a lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    threading.Thread(target=stop, daemon=True).start()
    print(f"{NAME}: instance {INDEX} listening on {host}:{port}", flush=True)
    server.serve_forever()
    print(f"{NAME}: instance {INDEX} stopping", flush=True)
    server.server_close()


if __name__ == "__main__":
    main()

"""The worker: takes the present second apart, every few seconds, until it is told to stop. It listens on no port."""

import os
import signal
import sys
import threading
import time

from factors import sentence


def main():
    index = os.environ.get("CF_INSTANCE_INDEX", "0")
    pause = float(os.environ.get("WORKER_SECONDS", "5"))
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())

    print(f"worker {index}: starting, one number every {pause:g} s", flush=True)
    done = 0
    while not stop.is_set():
        print(f"worker {index}: {sentence(int(time.time()))}", flush=True)
        done += 1
        stop.wait(pause)
    print(f"worker {index}: stopped after {done} numbers", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

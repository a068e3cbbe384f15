"""The worker: takes the present second apart, every few seconds, until it is told to stop. It listens on no port."""

import os
import signal
import sys
import time

from factors import sentence


def main():
    index = os.environ.get("CF_INSTANCE_INDEX", "0")
    pause = float(os.environ.get("WORKER_SECONDS", "5"))
    stops = {signal.SIGTERM, signal.SIGINT}
    # Blocked, they wait until sigtimedwait() takes them: no handler interrupts what holds a lock.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)

    print(f"worker {index}: starting, one number every {pause:g} s", flush=True)
    done = 0
    stopped = None
    while not stopped:
        print(f"worker {index}: {sentence(int(time.time()))}", flush=True)
        done += 1
        stopped = signal.sigtimedwait(stops, pause)
    print(f"worker {index}: stopped after {done} numbers", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()

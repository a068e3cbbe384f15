"""The report: which seconds of the coming minute are prime. It is run as a task and ends."""

import time

from factors import factors


def main():
    start = int(time.time())
    primes = [second for second in range(start, start + 60) if factors(second) == [second]]
    for second in primes:
        print(f"report: {second} is prime", flush=True)
    print(f"report: {len(primes)} of 60 seconds are prime", flush=True)


if __name__ == "__main__":
    main()

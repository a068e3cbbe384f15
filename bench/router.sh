#!/bin/sh
# Measures the router beside nginx as a plain proxy: 3 rounds of 5 s each.
set -eu
cd "$(dirname "$0")/.."
for tool in wrk nginx; do
	command -v "$tool" >/dev/null || { echo "bench/router.sh: $tool is missing: apt-get install $tool" >&2; exit 1; }
done
exec go run ./bench/router "$@"

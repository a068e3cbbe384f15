#!/bin/bash
# t.sh ONLY [RUN]
cd /work/wt/web3; export GOFLAGS="-trimpath -gcflags=all=-dwarf=false"
ONLY="$1" CUPOLA_TEST_ROOT=1 CUPOLA=$PWD/bin/cupola nice go test -tags "netgo osusergo" -vet=off -count=1 -timeout 9m -v -run "${2:-.}" ./test/e2e/web 2>&1 | grep -v '"level"'

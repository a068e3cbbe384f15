package main

import (
	"os"
	"testing"

	"cupola/test/e2e"
)

// maxBinary is what the program may have in bytes: as much as it has, and room for
// features. It jumps by 12 MB where a function can be reached that looks up a
// method by a name that is no constant, as text/template and some parsers of
// command lines do: then the linker keeps all exported methods of all types. This
// names such functions:
//
//	go build -ldflags=-dumpdep -o /dev/null ./cmd/cupola 2>&1 | grep -o '[^ ]* <ReflectMethod>' | sort -u
const maxBinary = 71_000_000

func TestTheBinaryIsNotTooLarge(t *testing.T) {
	info, err := os.Stat(e2e.NeedBinary(t))
	if err != nil {
		t.Fatal(err)
	}
	if info.Size() > maxBinary {
		t.Errorf("got a binary of %d bytes; want at most %d: see maxBinary", info.Size(), maxBinary)
	}
}

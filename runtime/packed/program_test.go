package packed

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"testing/fstest"
)

func TestProgramIsWhatWasPacked(t *testing.T) {
	r := rand.NewChaCha8([32]byte{})
	for _, size := range []int{1000, window - 1, window + 1, 5 * window} {
		program := make([]byte, size)
		_, _ = r.Read(program)
		clear(program[size/2:])
		packed, err := Pack(program)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Pack(program); err != nil || !bytes.Equal(again, packed) {
			t.Errorf("%d bytes, packed again: %v; want equal bytes", size, err)
		}
		p, err := Open(fstest.MapFS{"one" + extension: {Data: packed}}, "one")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(p)
		if err != nil || !bytes.Equal(got, program) || p.Size != int64(size) {
			t.Errorf("%d bytes: got %d of %d, %v", size, len(got), p.Size, err)
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOpenOfWhatIsNotPacked(t *testing.T) {
	unsized, err := Pack([]byte("so short that its frame has no size"))
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "\x7fELF", "#!/bin/sh\nexit 0\n", string(unsized)} {
		if _, err := Open(fstest.MapFS{"one" + extension: {Data: []byte(text)}}, "one"); err == nil {
			t.Errorf("%q: want an error", text)
		}
	}
}

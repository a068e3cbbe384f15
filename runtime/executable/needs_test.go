package executable

import (
	"bytes"
	"os"
	"testing"
)

// TestOwnLoader reads a program that runs here.
func TestOwnLoader(t *testing.T) {
	t.Parallel()
	f, err := os.Open("/bin/sh")
	if err != nil {
		t.Skip(err)
	}
	defer f.Close()
	n, err := read(f)
	if err != nil || n.Processor == "" || n.System != "" || n.Script {
		t.Errorf("got %+v, %v", n, err)
	}
	if n.Interpreter != "" {
		if _, err := os.Stat(n.Interpreter); err != nil {
			t.Errorf("its loader: %v", err)
		}
	}
}

// FuzzRead reads whatever an app may have as its program, in bounded memory.
func FuzzRead(f *testing.F) {
	for _, text := range []string{"", "#!", "#!/bin/sh\n", "#! /usr/bin/env -S x \r\n", "MZ", "\x7fELF", elfOf(62, "/lib/x"), "\x7fELF\x01\x02\x01" + string(make([]byte, 60))} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		n, err := read(bytes.NewReader(data))
		if len(n.Interpreter) > maxLoader+1 || n.Script && n.Processor != "" {
			t.Errorf("got %+v, %v", n, err)
		}
	})
}

package pack_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"

	"cupola/rootfs/pack"
)

func TestStoredIsGzip(t *testing.T) {
	for _, size := range []int{0, 1, 65534, 65535, 65536, 300_000} {
		content := bytes.Repeat([]byte("0123456789"), size/10+1)[:size]
		var b bytes.Buffer
		z := pack.NewStored(&b)
		for rest := content; len(rest) > 0; { // in odd parts
			n := min(len(rest), 7777)
			_, err := z.Write(rest[:n])
			must(t, err)
			rest = rest[n:]
		}
		must(t, z.Close())
		r, err := gzip.NewReader(&b)
		must(t, err)
		got, err := io.ReadAll(r)
		if err != nil || !bytes.Equal(got, content) {
			t.Errorf("%d bytes: got %d, %v; want the same", size, len(got), err)
		}
	}
}

// TestStoredStaysTheSame holds the very bytes: digests of them are kept.
func TestStoredStaysTheSame(t *testing.T) {
	var b bytes.Buffer
	z := pack.NewStored(&b)
	_, err := io.WriteString(z, "hello\n")
	must(t, err)
	must(t, z.Close())
	const want = "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\xff\x01\x06\x00\xf9\xffhello\n\x20\x30\x3a\x36\x06\x00\x00\x00"
	if b.String() != want {
		t.Errorf("got %q; want %q", b.String(), want)
	}
}

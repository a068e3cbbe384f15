package gitpack

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // as packs end
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// ended appends the checksum.
func (p *packed) ended() []byte {
	sum := sha1.Sum(p.Bytes()) //nolint:gosec // as above
	return append(p.Bytes(), sum[:]...)
}

// TestCopyEndsWithThePack copies packs from streams that go on after them.
func TestCopyEndsWithThePack(t *testing.T) {
	limits := Limits{Objects: 10, Chain: 1 << 20, All: 2 << 20}
	p := newPack(t, 4)
	first := p.blob(300_000)
	p.blob(0)
	p.delta(first, 10, 10)
	p.named(10, 10)
	pack := p.ended()
	for name, wrap := range map[string]func(io.Reader) io.Reader{"whole": func(r io.Reader) io.Reader { return r }, "bytes": iotest.OneByteReader} {
		from := bufio.NewReader(wrap(strings.NewReader(string(pack) + "the rest")))
		var to bytes.Buffer
		if err := limits.Copy(&to, from); err != nil || !bytes.Equal(to.Bytes(), pack) {
			t.Errorf("%s: got %d bytes, %v; want %d", name, to.Len(), err, len(pack))
		}
		if rest, err := io.ReadAll(from); err != nil || string(rest) != "the rest" {
			t.Errorf("%s: left %q, %v", name, rest, err)
		}
	}
	for n := range len(pack) - 1 {
		if err := limits.Copy(io.Discard, bufio.NewReader(bytes.NewReader(pack[:n]))); err == nil {
			t.Fatalf("the first %d bytes are copied as if they were all", n)
		}
	}
}

func TestCopyRefuses(t *testing.T) {
	limits := Limits{Objects: 2, Chain: 1000, All: 1500}
	for name, c := range map[string]struct {
		objects uint32
		write   func(*packed)
		want    string
	}{
		"too many objects": {3, func(*packed) {}, "it has 3 objects; at most 2 are read"},
		"a large object":   {1, func(p *packed) { p.blob(1001) }, errObject.Error()},
		"too much":         {2, func(p *packed) { p.blob(800); p.blob(800) }, "it unpacks to more than 1500 bytes"},
		"a bomb":           {1, func(p *packed) { p.object(3, 10, nil, make([]byte, 1<<20)) }, errPack.Error()},
		"a short object":   {1, func(p *packed) { p.object(3, 10, nil, []byte("x")) }, errPack.Error()},
		"a kind":           {1, func(p *packed) { p.object(5, 1, nil, []byte("x")) }, errPack.Error()},
		"an endless size":  {1, func(p *packed) { p.WriteString("\xb0" + strings.Repeat("\xff", 20)) }, errPack.Error()},
		"no zlib":          {1, func(p *packed) { p.WriteString("\x31" + strings.Repeat("x", 50)) }, "zlib"},
	} {
		p := newPack(t, c.objects)
		c.write(p)
		if err := limits.Copy(io.Discard, bufio.NewReader(bytes.NewReader(p.ended()))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
	if err := limits.Copy(io.Discard, bufio.NewReader(strings.NewReader("no pack at all"))); !errors.Is(err, errPack) {
		t.Errorf("got %v", err)
	}
	full := errors.New("full")
	if err := limits.Copy(failing{full}, bufio.NewReader(bytes.NewReader(newPack(t, 0).ended()))); !errors.Is(err, full) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ error }

func (f failing) Write([]byte) (int, error) { return 0, f.error }

// FuzzCopy copies what strangers send.
func FuzzCopy(f *testing.F) {
	f.Add([]byte("PACK\x00\x00\x00\x02\x00\x00\x00\x01\x31x\x9c\x03\x00\x00\x00\x00\x01"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var to bytes.Buffer
		from := bufio.NewReader(bytes.NewReader(stream))
		if err := (Limits{Objects: 100, Chain: 1 << 20, All: 1 << 20}).Copy(&to, from); err != nil {
			return
		}
		rest, err := io.ReadAll(from)
		if err != nil || to.String()+string(rest) != string(stream) {
			t.Errorf("got %q and %q of %q, %v", to.Bytes(), rest, stream, err)
		}
	})
}

package gitpack

import (
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"strings"
	"testing"
)

// packed writes packs by hand, so that they can be what no git would write.
type packed struct {
	t *testing.T
	bytes.Buffer
}

func newPack(t *testing.T, objects uint32) *packed {
	p := &packed{t: t}
	p.WriteString("PACK")
	p.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), objects))
	return p
}

// object appends one of a kind: 3 is a blob, 6 a delta of what is so far back, 7
// one of what a hash names.
func (p *packed) object(kind byte, size uint64, reference, content []byte) (at int) {
	p.t.Helper()
	at = p.Len()
	b := kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.WriteByte(b | 0x80)
		b = byte(size & 0x7f)
	}
	p.WriteByte(b)
	p.Write(reference)
	z := zlib.NewWriter(p)
	if _, err := z.Write(content); err != nil {
		p.t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		p.t.Fatal(err)
	}
	return at
}

func (p *packed) blob(size int) int { return p.object(3, uint64(size), nil, make([]byte, size)) }

// delta makes something of a size of what is at an offset.
func (p *packed) delta(of int, from, size uint64) int {
	back := p.Len() - of
	reference := []byte{byte(back & 0x7f)}
	for back >>= 7; back > 0; back >>= 7 {
		back--
		reference = append([]byte{0x80 | byte(back&0x7f)}, reference...)
	}
	content := binary.AppendUvarint(binary.AppendUvarint(nil, from), size)
	return p.object(6, uint64(len(content)), reference, content)
}

func (p *packed) named(from, size uint64) int {
	content := binary.AppendUvarint(binary.AppendUvarint(nil, from), size)
	return p.object(7, uint64(len(content)), make([]byte, 20), content)
}

func TestPacksAreMeasured(t *testing.T) {
	limits := Limits{Objects: 10, Chain: 1000, All: 5000}
	for name, c := range map[string]struct {
		objects uint32
		write   func(*packed)
		want    string
	}{
		"what fits":            {2, func(p *packed) { p.delta(p.blob(400), 400, 500) }, ""},
		"many objects":         {11, func(*packed) {}, "it has 11 objects; at most 10 are read"},
		"a large one":          {1, func(p *packed) { p.blob(1001) }, errObject.Error()},
		"a lie about its size": {1, func(p *packed) { p.object(3, 10, nil, make([]byte, 100_000)) }, "inflated"},
		"a delta of little":    {2, func(p *packed) { p.delta(p.blob(10), 10, 1<<40) }, errObject.Error()},
		"a chain": {4, func(p *packed) {
			at := p.blob(300)
			for range 3 {
				at = p.delta(at, 300, 300)
			}
		}, errObject.Error()},
		"deltas of what has a name": {4, func(p *packed) {
			for range 4 {
				p.named(300, 300)
			}
		}, errObject.Error()},
		"all together": {6, func(p *packed) {
			for range 6 {
				p.blob(900)
			}
		}, "it unpacks to more than 5000 bytes"},
		"a delta that is none": {2, func(p *packed) {
			p.blob(10)
			p.object(7, 1, make([]byte, 20), []byte{0x80})
		}, errObject.Error()},
		"fewer than it says": {2, func(p *packed) { p.blob(10) }, "EOF"},
	} {
		p := newPack(t, c.objects)
		c.write(p)
		err := limits.Check(t.Context(), bytes.NewReader(p.Bytes()))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v; want %q", name, err, c.want)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	p := newPack(t, 1)
	p.blob(1)
	if err := limits.Check(ended, bytes.NewReader(p.Bytes())); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v; want that it ends", err)
	}
}

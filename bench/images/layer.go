package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"path"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"cupola/runtime/fault"
)

const goarch = runtime.GOARCH

// shares are the layers' parts of an image, the lowest first: a distribution,
// and less and less above it. The last one takes the place of the one before it.
var shares = []float64{0.50, 0.20, 0.15, 0.08, 0.07, 0.07}

// layer is one of the images' in the registry.
type layer struct {
	layer v1.Layer
	size  int64 // bytes as it is moved
	files int
}

// makeLayers makes the same layers every time.
func makeLayers(total int64) ([]*layer, error) {
	layers := make([]*layer, len(shares))
	var group fault.Group
	for n, share := range shares {
		group.Go(func() (err error) {
			layers[n], err = makeLayer(uint64(n), int64(share*float64(total)))
			return err
		})
	}
	return layers, group.Wait()
}

func makeLayer(seed uint64, total int64) (*layer, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	t := &tree{w: tar.NewWriter(z), r: rand.New(rand.NewPCG(seed, 300)), name: fmt.Sprintf("layer%d", seed)}
	err := t.write(total)
	if err := errors.Join(err, t.w.Close(), z.Close()); err != nil {
		return nil, err
	}
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(b.Bytes())), nil })
	return &layer{layer: l, size: int64(b.Len()), files: t.files}, err
}

// tree writes files such as a distribution has: many small ones and a few large
// ones, of text, of programs, and of what is compressed already.
type tree struct {
	w     *tar.Writer
	r     *rand.Rand
	name  string
	dir   string
	files int
	words [4096]string
}

const (
	filesOfDir = 24
	typical    = 4 << 10 // bytes of a file, the median
	largest    = 8 << 20
	spread     = 2.0 // of the logarithm of sizes: the mean is 7 times the median
)

func (t *tree) write(total int64) error {
	for i := range t.words {
		word := make([]byte, 2+t.r.IntN(9))
		for j := range word {
			word[j] = 'a' + byte(t.r.IntN(26))
		}
		t.words[i] = string(word) + " "
	}
	buf := make([]byte, 0, largest)
	for done := int64(0); done < total; {
		if t.files%filesOfDir == 0 {
			if err := t.nextDir(); err != nil {
				return err
			}
		}
		size := min(int64(typical*math.Exp(spread*t.r.NormFloat64())), largest, total-done)
		done += size
		if err := t.file(t.content(buf[:0], int(size))); err != nil {
			return err
		}
	}
	return nil
}

func (t *tree) nextDir() error {
	t.dir = path.Join("usr", "share", t.name, fmt.Sprintf("section%d", t.files/filesOfDir/16), fmt.Sprintf("package%d", t.files/filesOfDir))
	return t.w.WriteHeader(&tar.Header{Name: t.dir + "/", Typeflag: tar.TypeDir, Mode: 0o755})
}

// file writes one and, for every 16th, a link to it.
func (t *tree) file(content []byte) error {
	h := &tar.Header{Name: path.Join(t.dir, fmt.Sprintf("file%d", t.files)), Mode: 0o644, Size: int64(len(content))}
	if t.files++; t.files%8 == 0 {
		h.Mode = 0o755
	}
	if err := t.w.WriteHeader(h); err != nil {
		return err
	}
	if _, err := t.w.Write(content); err != nil || t.files%16 != 0 {
		return err
	}
	link := &tar.Header{Name: h.Name + ".link", Typeflag: tar.TypeSymlink, Linkname: path.Base(h.Name), Mode: 0o777}
	if t.files%64 == 0 {
		link.Typeflag, link.Linkname = tar.TypeLink, h.Name
	}
	return t.w.WriteHeader(link)
}

// content fills up to size: of ten files six are text, three are as programs are
// and one does not compress.
func (t *tree) content(b []byte, size int) []byte {
	switch kind := t.r.IntN(10); {
	case kind < 6:
		for len(b) < size {
			n := t.r.Uint64()
			b = append(b, t.words[(n&4095)*(n>>12&4095)*(n>>24&4095)>>24]...) // common words come often
		}
	case kind < 9:
		for len(b) < size { // some opcodes, small operands, zeros
			n := t.r.Uint64()
			b = append(b, byte(n&15)*17, byte(n>>4&3), byte(n>>8), byte(n>>16&15), 0, byte(n>>24&7), 0, 0)
		}
	default:
		for len(b) < size {
			b = binary.LittleEndian.AppendUint64(b, t.r.Uint64())
		}
	}
	return b[:size]
}

package push

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
)

// tgzOf writes headers, each with as many zeros as it says.
func tgzOf(headers ...tar.Header) func(io.Writer) error {
	return tgz(func(w *tar.Writer) error {
		for _, h := range headers {
			if err := w.WriteHeader(&h); err != nil {
				return err
			}
			if _, err := io.CopyN(w, zeroReader{}, h.Size); err != nil {
				return err
			}
		}
		return nil
	})
}

// tgz packs what write writes, a good entry first.
func tgz(write func(*tar.Writer) error) func(io.Writer) error {
	return func(to io.Writer) error {
		z, err := gzip.NewWriterLevel(to, gzip.BestSpeed)
		if err != nil {
			return err
		}
		w := tar.NewWriter(z)
		if err := w.WriteHeader(&tar.Header{Name: "./app/run", Mode: 0o755, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		if err := write(w); err != nil {
			return err
		}
		if err := w.Close(); err != nil {
			return err
		}
		return z.Close()
	}
}

type zeroReader struct{}

func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// hostileDroplets are tarballs that no droplet may be.
func hostileDroplets() []archiveCase {
	file := func(name string) tar.Header { return tar.Header{Name: name, Mode: 0o644, Typeflag: tar.TypeReg} }
	return []archiveCase{
		{"absolute path", `/etc/passwd: is an absolute path`, tgzOf(file("/etc/passwd"))},
		{"dots", `\.\./\.\./etc/passwd: leads out of`, tgzOf(file("../../etc/passwd"))},
		{"file through a link", `l/f: lies below l, which is not a directory`,
			tgzOf(tar.Header{Name: "l", Linkname: "/etc", Typeflag: tar.TypeSymlink}, file("l/f"))},
		{"hard link out", `leads out of|absolute path`, tgzOf(tar.Header{Name: "h", Linkname: "../../etc/passwd", Typeflag: tar.TypeLink})},
		{"absolute hard link", `absolute path`, tgzOf(tar.Header{Name: "h", Linkname: "/etc/passwd", Typeflag: tar.TypeLink})},
		{"device", `null: is neither a file`, tgzOf(tar.Header{Name: "null", Mode: 0o666, Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3})},
		{"block device", `sda: is neither a file`, tgzOf(tar.Header{Name: "sda", Mode: 0o666, Typeflag: tar.TypeBlock, Devmajor: 8})},
		{"fifo", `pipe: is neither a file`, tgzOf(tar.Header{Name: "pipe", Mode: 0o666, Typeflag: tar.TypeFifo})},
		{"twice", `app/run: is there twice`, tgzOf(file("app/run"))},
		{"bomb", `unpacks to more than`, tarBomb},
		{"lying size", `is not a valid tgz file`, lyingTar},
		{"a million entries", `has more than 300000 entries`, millionTar},
		{"cut short", `is not a valid tgz file`, cutShort(tgzOf(file("a"), tar.Header{Name: "b", Size: 1 << 20, Typeflag: tar.TypeReg}))},
		{"no tgz", `is not a valid tgz file`, zipOf(entry{"app/run", "", 0o755})},
	}
}

// tarBomb says that a file of it has a terabyte.
func tarBomb(w io.Writer) error { return brokenTar(w, 1<<40) }

// lyingTar ends before the file that it promised.
func lyingTar(w io.Writer) error { return brokenTar(w, 1<<20) }

// brokenTar promises a file of a size and ends.
func brokenTar(to io.Writer, size int64) error {
	z := gzip.NewWriter(to)
	w := tar.NewWriter(z)
	if err := w.WriteHeader(&tar.Header{Name: "app/zeros", Mode: 0o644, Size: size, Typeflag: tar.TypeReg}); err != nil {
		return err
	}
	if _, err := io.CopyN(w, zeroReader{}, 4096); err != nil {
		return err
	}
	return z.Close()
}

func millionTar(w io.Writer) error {
	return tgz(func(w *tar.Writer) error {
		for i := range 1_000_000 {
			if err := w.WriteHeader(&tar.Header{Name: fmt.Sprintf("%x", i), Mode: 0o644, Typeflag: tar.TypeReg}); err != nil {
				return err
			}
		}
		return nil
	})(w)
}

// goodDroplet is a tarball that is taken.
func goodDroplet() []byte {
	var b bytes.Buffer
	if err := tgzOf()(&b); err != nil {
		panic(err)
	}
	return b.Bytes()
}

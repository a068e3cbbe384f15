// Package uploads checks and stores what users upload: the files of an app as a
// zip (files that the server already has are named by their SHA-1), droplets and
// buildpacks. It trusts nothing in an upload: it reads every entry, and an entry
// with a wrong size or a path outside the tree makes the whole upload invalid.
package uploads

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
)

// Limits bound an upload.
type Limits struct {
	Entries int   // files, directories and links
	Bytes   int64 // unpacked
	Ratio   int64 // unpacked size of a file over its packed size, checked above ratioFree
}

// defaultLimits are a node_modules and a gigabyte more: Cloud Controller's
// packages.max_package_size is 1 GiB packed.
var defaultLimits = Limits{Entries: 300_000, Bytes: 4 << 30, Ratio: 1100}

// ratioFree is the unpacked size up to which the ratio is not checked; bytes.
// Deflate cannot exceed 1032:1, so a higher ratio means a false size.
const ratioFree = 1 << 20

// maxLink bounds the target of a symbolic link: Linux's PATH_MAX.
const maxLink = 4096

// refusal is the error of a bad upload: the entry, and what is wrong with it.
type refusal struct{ Entry, Reason string }

func (e *refusal) Error() string {
	if e.Entry == "" {
		return e.Reason
	}
	return fmt.Sprintf("%s: %s", e.Entry, e.Reason)
}

// IsInvalid reports whether the upload caused err.
func IsInvalid(err error) bool {
	var e *refusal
	return errors.As(err, &e) || errors.Is(err, zip.ErrFormat) || errors.Is(err, zip.ErrAlgorithm) || errors.Is(err, zip.ErrChecksum) ||
		errors.Is(err, io.ErrUnexpectedEOF)
}

// checker checks the entries of one upload.
type checker struct {
	limits Limits
	kinds  map[string]fs.FileMode // path → type
	links  map[string]string      // path → target
	left   int64                  // bytes that remaining entries may have
}

func newChecker(l Limits) *checker {
	return &checker{limits: l, kinds: map[string]fs.FileMode{}, links: map[string]string{}, left: l.Bytes}
}

// entry checks an entry's name and type. It returns the clean path; "" is the
// root.
func (c *checker) entry(name string, mode fs.FileMode) (string, error) {
	clean, err := cleanPath(name)
	if err != nil || clean == "" {
		return "", err
	}
	switch mode.Type() {
	case 0, fs.ModeDir, fs.ModeSymlink:
	default:
		return "", &refusal{name, "is neither a file, a directory nor a symbolic link"}
	}
	if have, ok := c.kinds[clean]; ok && !(have.IsDir() && mode.IsDir()) {
		return "", &refusal{name, "is there twice"}
	}
	for dir := path.Dir(clean); dir != "."; dir = path.Dir(dir) {
		if kind, ok := c.kinds[dir]; ok && !kind.IsDir() {
			return "", &refusal{name, "lies below " + dir + ", which is not a directory"}
		}
		c.kinds[dir] = fs.ModeDir
	}
	c.kinds[clean] = mode.Type()
	if len(c.kinds) > c.limits.Entries {
		return "", &refusal{"", fmt.Sprintf("has more than %d entries", c.limits.Entries)}
	}
	return clean, nil
}

// cleanPath returns name as a clean path within the tree.
func cleanPath(name string) (string, error) {
	switch {
	case len(name) > maxLink:
		return "", &refusal{name[:40] + "…", "has a path that is too long"}
	case name == "" || strings.ContainsAny(name, "\x00\\"):
		return "", &refusal{fmt.Sprintf("%q", name), "is not a valid path"}
	case path.IsAbs(name):
		return "", &refusal{name, "is an absolute path"}
	}
	clean := path.Clean(name)
	if clean == ".." || strings.HasPrefix(clean, "../") {
		return "", &refusal{name, "leads out of the app's directory"}
	}
	if clean == "." {
		return "", nil
	}
	return clean, nil
}

// link records a symbolic link; linksStay later checks its target.
func (c *checker) link(name, to string) error {
	if to == "" || path.IsAbs(to) || strings.Contains(to, "\x00") {
		return outside(name, to)
	}
	c.links[name] = to
	return nil
}

func outside(name, to string) error {
	return &refusal{name, fmt.Sprintf("links to %q, which is outside the app's directory", to)}
}

// linksStay rejects a link that leads out of the tree, directly or through
// other links.
func (c *checker) linksStay() error {
	left := maxWalk
	for name, to := range c.links {
		if c.leaves(name, &left) {
			return outside(name, to)
		}
		if left < 0 {
			return &refusal{name, "is one of too many links"}
		}
	}
	return nil
}

const (
	maxFollowed = 40      // how many links Linux follows in one path
	maxWalk     = 1 << 30 // bytes of paths that are looked up
)

// leaves reports whether a path leads out of the tree when links are followed.
// left is the budget of bytes to look up; leaves gives up when it is spent.
func (c *checker) leaves(name string, left *int) bool {
	at, todo := ".", strings.Split(name, "/")
	for followed := 0; len(todo) > 0 && *left >= 0; {
		next := todo[0]
		todo = todo[1:]
		if next == ".." {
			if at == "." {
				return true
			}
			at = path.Dir(at)
			continue
		}
		here := path.Join(at, next)
		*left -= len(here)
		to, isLink := c.links[here]
		if !isLink {
			at = here
			continue
		}
		if followed++; followed > maxFollowed {
			return false // Linux fails with ELOOP here
		}
		todo = append(strings.Split(to, "/"), todo...)
	}
	return false
}

// sizes checks the sizes that entries declare against the limits, before any
// entry is read.
func (c *checker) sizes(files []*zip.File) error {
	left := c.left
	for _, f := range files {
		size := int64(f.UncompressedSize64)
		if left -= size; size < 0 || left < 0 {
			return c.tooLarge()
		}
		if size > ratioFree && size/max(1, int64(f.CompressedSize64)) > c.limits.Ratio {
			return &refusal{f.Name, "is packed too well to be true"}
		}
	}
	return nil
}

// content copies an entry's content to w and checks it against its declared
// size and checksum.
func (c *checker) content(ctx context.Context, f *zip.File, w io.Writer) error {
	size := int64(f.UncompressedSize64)
	r, err := f.Open()
	if err != nil {
		return &refusal{f.Name, err.Error()}
	}
	defer r.Close()
	n, err := io.Copy(w, io.LimitReader(&ctxReader{ctx, r}, size+1))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	c.left -= n
	switch {
	case errors.Is(err, zip.ErrChecksum):
		return &refusal{f.Name, "has not the checksum that it says"}
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, zip.ErrFormat):
		return &refusal{f.Name, err.Error()}
	case err != nil || n != size:
		return &refusal{f.Name, fmt.Sprintf("has not the %d bytes that it says", size)}
	}
	return nil
}

func (c *checker) tooLarge() error {
	return &refusal{"", fmt.Sprintf("unpacks to more than %d bytes", c.limits.Bytes)}
}

type ctxReader struct {
	ctx context.Context
	io.Reader
}

func (r *ctxReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.Reader.Read(p)
}

package gitpush

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/storer"
	"github.com/go-git/go-git/v5/storage/filesystem"
	"github.com/klauspost/compress/flate"

	"cupola/server/cfignore"
)

// Bounds of the files of a commit: those of an uploaded package, and what go-git holds
// of trees in memory.
const (
	maxEntries = 300_000
	maxBytes   = 4 << 30
	maxTree    = 16 << 20 // bytes of a tree object
	maxDepth   = 200      // directories in each other
	maxText    = 1 << 20  // bytes of a manifest or a .cfignore
	maxLink    = 4096
)

// objects are those that a push has sent, and those that were kept before.
type objects struct {
	*filesystem.Storage
	before *filesystem.Storage // nil for none
}

// EncodedObject implements storer.EncodedObjectStorer.
func (o objects) EncodedObject(kind plumbing.ObjectType, h plumbing.Hash) (plumbing.EncodedObject, error) {
	obj, err := o.Storage.EncodedObject(kind, h)
	if errors.Is(err, plumbing.ErrObjectNotFound) && o.before != nil {
		return o.before.EncodedObject(kind, h)
	}
	return obj, err
}

// EncodedObjectSize implements storer.EncodedObjectStorer.
func (o objects) EncodedObjectSize(h plumbing.Hash) (int64, error) {
	size, err := o.Storage.EncodedObjectSize(h)
	if errors.Is(err, plumbing.ErrObjectNotFound) && o.before != nil {
		return o.before.EncodedObjectSize(h)
	}
	return size, err
}

// files are the files of a commit, or of a directory of it.
type files struct {
	from storer.EncodedObjectStorer
	root plumbing.Hash // of the tree
	when time.Time
}

// filesOf are the files of a commit.
func filesOf(from storer.EncodedObjectStorer, commit plumbing.Hash) (*files, error) {
	c, err := object.GetCommit(from, commit)
	if err != nil {
		return nil, fmt.Errorf("read commit %s: %w", commit, err)
	}
	return &files{from, c.TreeHash, c.Committer.When}, nil
}

// tree reads a tree, whose entries are checked.
func (f *files) tree(h plumbing.Hash, at string) (*object.Tree, error) {
	size, err := f.from.EncodedObjectSize(h)
	if err != nil {
		return nil, fmt.Errorf("read directory /%s: %w", at, err)
	}
	if size > maxTree {
		return nil, fmt.Errorf("directory /%s has too many files", at)
	}
	t, err := object.GetTree(f.from, h)
	if err != nil {
		return nil, fmt.Errorf("read directory /%s: %w", at, err)
	}
	for _, e := range t.Entries {
		if !validName(e.Name) {
			return nil, fmt.Errorf("directory /%s has an entry named %q, which no git would write", at, e.Name)
		}
	}
	return t, nil
}

// validName reports whether git itself would take a name into a tree.
func validName(name string) bool {
	return name != "" && name != "." && name != ".." && !strings.EqualFold(name, ".git") && !strings.ContainsAny(name, "/\\\x00")
}

// entry finds an entry at a path below the top.
func (f *files) entry(name string) (object.TreeEntry, bool, error) {
	at := object.TreeEntry{Mode: filemode.Dir, Hash: f.root}
	done := ""
	for part := range strings.SplitSeq(name, "/") {
		if at.Mode != filemode.Dir {
			return at, false, nil
		}
		t, err := f.tree(at.Hash, done)
		if err != nil {
			return at, false, err
		}
		next, err := t.FindEntry(part)
		if err != nil {
			return at, false, nil // there is none
		}
		at, done = *next, path.Join(done, part)
	}
	return at, true, nil
}

// text reads a small file; "" if there is none.
func (f *files) text(name string) (string, error) {
	e, ok, err := f.entry(name)
	if err != nil || !ok || !e.Mode.IsFile() {
		return "", err
	}
	size, err := f.from.EncodedObjectSize(e.Hash)
	if err != nil {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	if size > maxText {
		return "", fmt.Errorf("%s has %d bytes; at most %d are accepted", name, size, maxText)
	}
	var b strings.Builder
	err = f.copy(&b, e.Hash, name)
	return b.String(), err
}

func (f *files) copy(w io.Writer, h plumbing.Hash, name string) error {
	b, err := object.GetBlob(f.from, h)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	r, err := b.Reader()
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer r.Close()
	_, err = io.Copy(w, r)
	return err
}

// below are the files of a directory.
func (f *files) below(dir string) (*files, error) {
	dir = path.Clean(dir)
	if dir == "." {
		return f, nil
	}
	if path.IsAbs(dir) || dir == ".." || strings.HasPrefix(dir, "../") {
		return nil, fmt.Errorf("path %q of the manifest leads out of the repository", dir)
	}
	e, ok, err := f.entry(dir)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, fmt.Errorf("the manifest's path %q is not in the commit: commit it, or push it with cf push", dir)
	case e.Mode != filemode.Dir:
		return nil, fmt.Errorf("the manifest's path %q is a file: git push deploys directories; push it with cf push", dir)
	}
	return &files{f.from, e.Hash, f.when}, nil
}

// walk visits the files that a push takes.
type walk struct {
	*files
	ctx   context.Context
	skip  cfignore.Matcher
	visit func(name string, e object.TreeEntry, size int64) error
	bytes int64
}

// each visits all files, links and directories that a push takes.
func (f *files) each(ctx context.Context, visit func(name string, e object.TreeEntry, size int64) error) error {
	text, err := f.text(cfignore.File)
	if err != nil {
		return err
	}
	if _, err := f.count(ctx, f.root, "", map[plumbing.Hash]int{}); err != nil {
		return err
	}
	w := &walk{files: f, ctx: ctx, skip: cfignore.New(text), visit: visit}
	return w.dir(f.root, "")
}

// count counts the entries of a tree and of those in it, and reads each tree once: a
// few objects can be a tree without end.
func (f *files) count(ctx context.Context, h plumbing.Hash, at string, known map[plumbing.Hash]int) (int, error) {
	if n, ok := known[h]; ok {
		return n, nil
	}
	if err := ctx.Err(); err != nil {
		return 0, context.Cause(ctx)
	}
	if strings.Count(at, "/") >= maxDepth {
		return 0, fmt.Errorf("directories nest deeper than %d", maxDepth)
	}
	t, err := f.tree(h, at)
	if err != nil {
		return 0, err
	}
	n := len(t.Entries)
	for _, e := range t.Entries {
		if e.Mode != filemode.Dir {
			continue
		}
		more, err := f.count(ctx, e.Hash, path.Join(at, e.Name), known)
		if err != nil {
			return 0, err
		}
		if n += more; n > maxEntries {
			return 0, fmt.Errorf("the commit has more than %d files and directories", maxEntries)
		}
	}
	known[h] = n
	return n, nil
}

func (w *walk) dir(h plumbing.Hash, at string) error {
	t, err := w.tree(h, at)
	if err != nil {
		return err
	}
	for _, e := range t.Entries {
		name := path.Join(at, e.Name)
		if w.skip.Skips(name, e.Mode == filemode.Dir) {
			continue
		}
		if err := w.entry(e, name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walk) entry(e object.TreeEntry, name string) error {
	if err := w.ctx.Err(); err != nil {
		return context.Cause(w.ctx)
	}
	var size int64
	switch e.Mode {
	case filemode.Dir:
	case filemode.Submodule:
		return fmt.Errorf("%s is a submodule, whose files a push does not send: commit them instead ('git rm --cached %s', remove its .git, 'git add %s'), or name it in .cfignore", name, name, name)
	case filemode.Regular, filemode.Deprecated, filemode.Executable, filemode.Symlink:
		var err error
		if size, err = w.from.EncodedObjectSize(e.Hash); err != nil {
			return fmt.Errorf("read %s: %w", name, err)
		}
		if e.Mode == filemode.Symlink && size > maxLink {
			return fmt.Errorf("%s is a link that is too long", name)
		}
	default:
		return fmt.Errorf("%s has mode %s, which no git would write", name, e.Mode)
	}
	if w.bytes += size; w.bytes > maxBytes {
		return fmt.Errorf("the commit has more than %d bytes", int64(maxBytes))
	}
	if err := w.visit(name, e, size); err != nil || e.Mode != filemode.Dir {
		return err
	}
	return w.dir(e.Hash, name)
}

// pointer begins a file that Git LFS has put in place of a large one; maxPointer is
// how long such a file may be (git-lfs: docs/spec.md).
const (
	pointer    = "version https://git-lfs.github.com/spec/"
	maxPointer = 1024
)

// summary is what a look at all files finds.
type summary struct {
	files int
	bytes int64
	lfs   []string // files that are pointers of Git LFS
}

// check looks at all files that a push takes, before anything is deployed.
func (f *files) check(ctx context.Context) (s summary, err error) {
	err = f.each(ctx, func(name string, e object.TreeEntry, size int64) error {
		if e.Mode == filemode.Dir {
			return nil
		}
		s.files++
		s.bytes += size
		if size < int64(len(pointer)) || size >= maxPointer || e.Mode == filemode.Symlink {
			return nil
		}
		var b strings.Builder
		if err := f.copy(&b, e.Hash, name); err != nil {
			return err
		}
		if strings.HasPrefix(b.String(), pointer) {
			s.lfs = append(s.lfs, name)
		}
		return nil
	})
	if err == nil && s.files == 0 {
		err = errors.New("the commit has no files to push")
	}
	return s, err
}

// zip writes the files that a push takes as the zip of a package.
func (f *files) zip(ctx context.Context, w io.Writer) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestSpeed) })
	err := f.each(ctx, func(name string, e object.TreeEntry, _ int64) error {
		h := &zip.FileHeader{Name: name, Method: zip.Deflate, Modified: f.when}
		if e.Mode == filemode.Dir {
			h.Name, h.Method = name+"/", zip.Store
		}
		h.SetMode(modeOf(e.Mode))
		to, err := z.CreateHeader(h)
		if err != nil || e.Mode == filemode.Dir {
			return err
		}
		return f.copy(to, e.Hash, name)
	})
	if err != nil {
		return err
	}
	return z.Close()
}

func modeOf(m filemode.FileMode) fs.FileMode {
	switch m {
	case filemode.Dir:
		return fs.ModeDir | 0o755
	case filemode.Executable:
		return 0o755
	case filemode.Symlink:
		return fs.ModeSymlink | 0o777
	}
	return 0o644
}

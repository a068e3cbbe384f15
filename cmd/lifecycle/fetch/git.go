package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/config"
	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/filemode"
	"github.com/go-git/go-git/v5/plumbing/format/packfile"
	"github.com/go-git/go-git/v5/plumbing/object"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp/capability"
	"github.com/go-git/go-git/v5/plumbing/transport"
	githttp "github.com/go-git/go-git/v5/plumbing/transport/http"
	"github.com/go-git/go-git/v5/storage/filesystem"

	"cupola/runtime/gitpack"
)

// maxSubmodules bounds how deep submodules may nest, and maxModules the bytes
// of the file that names them.
const (
	maxSubmodules = 5
	maxModules    = 1 << 20
)

// git writes the files of a commit into a directory, as os.Root keeps them in:
// no link in a repository leads a write anywhere else.
func (f *fetcher) git(ctx context.Context, u *url.URL, dir string) (int64, error) {
	from := *u
	from.Fragment, from.RawFragment = "", ""
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, err
	}
	defer root.Close()
	c := &checkout{fetcher: f, ctx: ctx, root: root, packs: f.bytes, files: f.bytes}
	err = c.repository(&from, u.Fragment, "", 0)
	return f.bytes - c.packs, err
}

// checkout writes the files of a commit, and of its submodules.
type checkout struct {
	*fetcher
	ctx   context.Context
	root  *os.Root
	packs int64 // bytes that may still be received
	files int64 // bytes that may still be written
	count int   // files and directories that were met
}

// repository writes what a repository has at the revision below the directory.
func (c *checkout) repository(u *url.URL, revision, dir string, depth int) error {
	if depth > maxSubmodules {
		return errors.New("its submodules nest too deep")
	}
	tmp, err := os.MkdirTemp("", "buildpack-git-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }() // the container's disk ends with it
	s, err := gitpack.Open(tmp)
	if err != nil {
		return err
	}
	hash, err := c.commit(u, revision, s)
	if err != nil {
		return err
	}
	commit, err := object.GetCommit(s, hash)
	if err != nil {
		return fmt.Errorf("read commit %s: %w", hash, err)
	}
	tree, err := commit.Tree()
	if err != nil {
		return fmt.Errorf("read the tree of commit %s: %w", hash, err)
	}
	return c.tree(u, tree, dir, depth)
}

func (c *checkout) tree(u *url.URL, tree *object.Tree, dir string, depth int) error {
	walker := object.NewTreeWalker(tree, true, nil)
	defer walker.Close()
	for {
		name, entry, err := walker.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read a tree: %w", err)
		}
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if c.count++; c.count > c.entries { // few objects can be a tree without end
			return fmt.Errorf("it has more than %d files and directories", c.entries)
		}
		switch entry.Mode {
		case filemode.Dir:
		case filemode.Submodule:
			err = c.submodule(u, tree, name, entry.Hash, dir, depth)
		default:
			err = c.file(tree, name, entry, dir)
		}
		if err != nil {
			return err
		}
	}
}

func (c *checkout) file(tree *object.Tree, name string, entry object.TreeEntry, dir string) error {
	file, err := tree.TreeEntryFile(&entry)
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	if c.files -= file.Size; c.files < 0 {
		return tooLargeError(c.bytes)
	}
	mode, err := entry.Mode.ToOSFileMode()
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	r, err := file.Reader()
	if err != nil {
		return fmt.Errorf("read %s: %w", name, err)
	}
	defer r.Close()
	to := path.Join(dir, name)
	if err := c.root.MkdirAll(path.Dir(to), 0o755); err != nil {
		return err
	}
	if mode&os.ModeSymlink != 0 {
		return c.link(r, to)
	}
	w, err := c.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode.Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Close())
}

// maxLink bounds the target of a symbolic link: Linux's PATH_MAX.
const maxLink = 4096

func (c *checkout) link(r io.Reader, to string) error {
	target, err := io.ReadAll(io.LimitReader(r, maxLink))
	if err != nil {
		return err
	}
	return c.root.Symlink(string(target), to)
}

// submodule writes the repository that .gitmodules names for the path, at the
// commit that the tree names.
func (c *checkout) submodule(u *url.URL, tree *object.Tree, name string, commit plumbing.Hash, dir string, depth int) error {
	file, err := tree.File(".gitmodules")
	if err != nil {
		return fmt.Errorf("submodule %s is not in .gitmodules", name)
	}
	if file.Size > maxModules {
		return errors.New("its .gitmodules is too large")
	}
	text, err := file.Contents()
	if err != nil {
		return err
	}
	modules := config.NewModules()
	if err := modules.Unmarshal([]byte(text)); err != nil {
		return fmt.Errorf("read .gitmodules: %w", err)
	}
	for _, m := range modules.Submodules {
		if m.Path != name {
			continue
		}
		from, err := submoduleURL(u, name, m.URL)
		if err != nil {
			return err
		}
		return c.repository(from, commit.String(), path.Join(dir, name), depth+1)
	}
	return fmt.Errorf("submodule %s is not in .gitmodules", name)
}

// submoduleURL resolves a submodule's URL, which may be relative to its
// repository's as to a directory.
func submoduleURL(u *url.URL, name, raw string) (*url.URL, error) {
	if strings.HasPrefix(raw, "./") || strings.HasPrefix(raw, "../") {
		base := *u
		base.Path, base.RawPath = path.Join(u.Path, raw), ""
		return &base, nil
	}
	from, err := url.Parse(raw)
	if err != nil || from.Scheme != "http" && from.Scheme != "https" {
		return nil, fmt.Errorf("the URL of submodule %s is not supported, only http and https are", name)
	}
	return from, nil
}

// commit stores the objects of the revision's commit and returns it. If a
// server does not serve a commit by its hash, it fetches all branches with
// their history.
func (c *checkout) commit(u *url.URL, revision string, s *filesystem.Storage) (plumbing.Hash, error) {
	session, err := c.session(u)
	if err != nil {
		return plumbing.ZeroHash, err
	}
	defer session.Close()
	refs, err := session.AdvertisedReferencesContext(c.ctx)
	if err != nil {
		return plumbing.ZeroHash, fmt.Errorf("cannot read git repository: %w", cause(err))
	}
	hash, advertised, err := resolve(refs, revision)
	if err != nil {
		return hash, err
	}
	if err = c.receive(session, refs, []plumbing.Hash{hash}, 1, s); err == nil || advertised {
		return peel(s, hash), err
	}
	again, err := c.session(u)
	if err != nil {
		return hash, err
	}
	defer again.Close()
	if refs, err = again.AdvertisedReferencesContext(c.ctx); err != nil {
		return hash, cause(err)
	}
	return hash, c.receive(again, refs, heads(refs), 0, s)
}

// peel returns the commit that an annotated tag names.
func peel(s *filesystem.Storage, hash plumbing.Hash) plumbing.Hash {
	if tag, err := object.GetTag(s, hash); err == nil {
		return tag.Target
	}
	return hash
}

func (f *fetcher) session(u *url.URL) (transport.UploadPackSession, error) {
	endpoint, err := transport.NewEndpoint(u.String())
	if err != nil {
		return nil, errors.New("it is not a valid URL")
	}
	return githttp.NewClient(f.client).NewUploadPackSession(endpoint, nil)
}

// resolve finds the hash of a branch, a tag or HEAD, which the server has
// advertised, or takes the revision for the hash of a commit.
func resolve(refs *packp.AdvRefs, revision string) (hash plumbing.Hash, advertised bool, err error) {
	if revision == "" {
		if refs.Head == nil {
			return hash, false, errors.New("the repository is empty")
		}
		return *refs.Head, true, nil
	}
	for _, prefix := range []string{"refs/heads/", "refs/tags/", ""} {
		if h, ok := refs.References[prefix+revision]; ok {
			return h, true, nil
		}
	}
	if plumbing.IsHash(revision) {
		return plumbing.NewHash(revision), false, nil
	}
	return hash, false, fmt.Errorf("the repository has no branch or tag %s", revision)
}

func heads(refs *packp.AdvRefs) []plumbing.Hash {
	var list []plumbing.Hash
	for name, h := range refs.References {
		if strings.HasPrefix(name, "refs/heads/") && !slices.Contains(list, h) {
			list = append(list, h)
		}
	}
	return list
}

// receive asks for the commits, with as much history as depth says (0: all of
// it), and stores what the server sends.
func (c *checkout) receive(session transport.UploadPackSession, refs *packp.AdvRefs, want []plumbing.Hash, depth int, s *filesystem.Storage) error {
	// Without a side band the answer is the pack and nothing else.
	req := packp.NewUploadPackRequest()
	req.Wants = want
	offers := []capability.Capability{capability.OFSDelta}
	if depth > 0 && refs.Capabilities.Supports(capability.Shallow) {
		req.Depth = packp.DepthCommits(depth)
		offers = append(offers, capability.Shallow)
	}
	for _, c := range offers {
		if err := req.Capabilities.Set(c); err != nil {
			return err
		}
	}
	res, err := session.UploadPack(c.ctx, req)
	if err != nil {
		return fmt.Errorf("the server does not send it: %w", cause(err))
	}
	defer func() { _ = res.Close() }()
	limited := &limitedReader{r: res, left: &c.packs}
	if err := c.unpack(limited, s); err != nil {
		if c.packs < 0 {
			return tooLargeError(c.bytes)
		}
		return fmt.Errorf("read what the server sends: %w", cause(err))
	}
	return nil
}

// unpack stores the objects of a pack, once it has been seen that they fit.
func (c *checkout) unpack(r io.Reader, s *filesystem.Storage) error {
	pack, err := os.CreateTemp(s.Filesystem().Root(), "received-")
	if err != nil {
		return err
	}
	defer func() { _ = errors.Join(pack.Close(), os.Remove(pack.Name())) }() // with the repository, at the latest
	if _, err := io.Copy(pack, r); err != nil {
		return err
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	limits := gitpack.Limits{Objects: gitpack.MaxObjects, Chain: gitpack.MaxChain, All: gitpack.MaxUnpacks * c.bytes}
	if err := limits.Check(c.ctx, pack); err != nil {
		return err
	}
	if _, err := pack.Seek(0, io.SeekStart); err != nil {
		return err
	}
	return packfile.UpdateObjectStorage(s, pack)
}

// limitedReader fails when there is more than left, where io.LimitReader would
// just end.
type limitedReader struct {
	r    io.Reader
	left *int64
}

func (l *limitedReader) Read(p []byte) (int, error) {
	n, err := l.r.Read(p)
	if *l.left -= int64(n); *l.left < 0 {
		return 0, errors.New("too large")
	}
	return n, err
}

package debian

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"cupola/rootfs/disk"
)

// Options say what to build and where from. Suite and Dest are needed.
type Options struct {
	Suite   string // debian12, debian13, jammy or noble, or such a codename; "" with a Lock: the lock's
	Variant string // core (also ""); dev: core and the toolchains; none: the essential packages alone
	Dest    string // directory to make; it must be absent or empty, and is absent after an error

	Mirror         string   // base URL of the archive; "": the one in the host's apt sources
	SecurityMirror string   // base URL of Debian's security archive; "": next to Mirror, with "-security"
	Keyrings       []string // files with the archive's keys, besides those where apt keeps them; only pinned keys count

	Packages []string // wanted besides those of the variant
	Without  []string // not wanted though others depend on them: names, or patterns of path.Match
	Lock     *Lock    // if set, exactly these packages: no index is read, and Variant, Packages and Without do not count
	Arch     string   // Debian's name of the architecture; "": the host's
	IDShift  uint32   // added to every uid and gid, for user namespaces

	Extras Extras // besides the packages

	CacheDir string         // keeps downloads by SHA256 for the next build; "": a temporary one
	Progress func(Progress) // called by one goroutine at a time; may be nil
	Client   *http.Client   // nil: one that follows HTTP_PROXY
}

// Extras are what a tree has besides its packages. The zero value is nothing.
type Extras struct {
	Users   []User
	Links   map[string]string // symbolic links: their targets by their names
	Locale  string            // the LANG of programs, such as en_US.UTF-8: another name for the C.UTF-8 that libc brings
	OpenSSL []string          // files that openssl.cnf includes
}

// A User is an account without a password, and a group of its name and number. Its home has the files of /etc/skel.
type User struct {
	Name string
	ID   int
	Home string   // relative to the tree
	Dirs []string // of the user, relative to the tree
}

// A Result is a finished tree.
type Result struct {
	Dir             string
	Lock            *Lock
	Packages        int
	DownloadedBytes int64    // over the network, indexes included
	InstalledBytes  int64    // sum of the files' lengths
	Warnings        []string // what the user should know, such as an archive that the mirror lacks
}

// Build makes a root filesystem in o.Dest. Owners are set only when
// the process is root; the tree is the same in every other respect. Ending ctx ends the
// build, which then leaves nothing at o.Dest. The work goes on next to it, in a
// directory ".building-*" that only a killed process leaves behind.
func Build(ctx context.Context, o Options) (Result, error) {
	if o.Lock != nil {
		if err := o.Lock.check(); err != nil {
			return Result{}, err
		}
		if o.Suite != "" && o.Suite != o.Lock.Suite || o.Arch != "" && o.Arch != o.Lock.Arch {
			return Result{}, fmt.Errorf("the lock is for %s on %s, not %s %s", o.Lock.Suite, o.Lock.Arch, o.Suite, o.Arch)
		}
		o.Suite, o.Variant, o.Arch = o.Lock.Suite, o.Lock.Variant, o.Lock.Arch
	}
	s, err := lookupSuite(o.Suite)
	if err != nil {
		return Result{}, err
	}
	return build(ctx, o, s, os.DirFS("/"))
}

// build is Build for any suite, with apt's sources below host.
func build(ctx context.Context, o Options, s suite, host fs.FS) (_ Result, err error) {
	b := &builder{Options: o, suite: s, reporter: &reporter{fn: o.Progress}, now: time.Now()}
	if err := b.defaults(host); err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, b.cleanUp()) }()
	if err := b.makeDirs(); err != nil {
		return Result{}, err
	}
	lock := o.Lock
	if lock == nil {
		if lock, err = b.resolveLock(ctx); err != nil {
			return Result{}, err
		}
	}
	if err := lock.checkPackages(s); err != nil {
		return Result{}, err
	}
	if err := b.checkRoom(lock); err != nil {
		return Result{}, err
	}
	result, err := b.install(ctx, lock)
	if err != nil {
		return Result{}, err
	}
	if err := os.Rename(b.work, o.Dest); err != nil {
		return Result{}, err
	}
	b.work = ""
	result.Dir = o.Dest
	return result, nil
}

// A builder is one run of build.
type builder struct {
	Options
	suite    suite
	host     []source
	now      time.Time
	reporter *reporter
	fetcher  *fetcher
	work     string // becomes Dest
	scratch  string // CacheDir if none was given
	warnings []string
	counter  counter
}

// defaults fills what Options left open and refuses what cannot work.
func (b *builder) defaults(host fs.FS) (err error) {
	if b.Variant == "" {
		b.Variant = "core"
	}
	if b.Arch == "" {
		if b.Arch, err = debianArch(runtime.GOARCH); err != nil {
			return err
		}
	}
	if b.Dest == "" {
		return fmt.Errorf("no destination directory given")
	}
	if entries, err := os.ReadDir(b.Dest); err == nil && len(entries) > 0 {
		return fmt.Errorf("%s is not empty: remove it, or choose another directory", b.Dest)
	}
	if b.host, err = readSources(host); err != nil {
		return err
	}
	if b.Client == nil {
		b.Client = defaultClient()
	}
	return nil
}

// debianArch translates Go's name of an architecture.
func debianArch(goarch string) (string, error) {
	names := map[string]string{"amd64": "amd64", "arm64": "arm64", "386": "i386", "arm": "armhf", "ppc64le": "ppc64el", "s390x": "s390x", "riscv64": "riscv64"}
	if name, ok := names[goarch]; ok {
		return name, nil
	}
	return "", fmt.Errorf("no Debian architecture for %s: pass one", goarch)
}

// makeDirs makes the work directory next to Dest, so that it can be renamed to it.
func (b *builder) makeDirs() (err error) {
	if err := os.MkdirAll(filepath.Dir(b.Dest), 0o755); err != nil {
		return err
	}
	if b.work, err = os.MkdirTemp(filepath.Dir(b.Dest), ".building-"); err != nil {
		return err
	}
	if b.CacheDir == "" {
		if b.scratch, err = os.MkdirTemp(filepath.Dir(b.Dest), ".debs-"); err != nil {
			return err
		}
		b.CacheDir = b.scratch
	}
	b.fetcher = &fetcher{client: b.Client, dir: b.CacheDir, wait: 200 * time.Millisecond, got: b.counter.add}
	return os.MkdirAll(b.CacheDir, 0o755)
}

// leastUnpacked is how many bytes of files a byte of a package has at least, on
// average, without the files that are left out.
const leastUnpacked = 2

// checkRoom refuses a tree for which there is surely no room, before it downloads
// anything. The cache is taken to be on the disk of Dest.
func (b *builder) checkRoom(lock *Lock) error {
	var need int64
	for _, p := range lock.Packages {
		need += leastUnpacked * p.SizeBytes
		if info, err := os.Stat(filepath.Join(b.CacheDir, p.SHA256)); err != nil || info.Size() != p.SizeBytes {
			need += p.SizeBytes
		}
	}
	return disk.CheckRoom(filepath.Dir(b.Dest), fmt.Sprintf("a stack of these %d packages", len(lock.Packages)), need)
}

func (b *builder) cleanUp() error {
	var errs []error
	for _, dir := range []string{b.work, b.scratch} {
		if dir != "" {
			errs = append(errs, os.RemoveAll(dir))
		}
	}
	return errors.Join(errs...)
}

package debian

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

const (
	lockVersion = 1
	maxLock     = 64 << 20
)

// A Lock says exactly what a tree is made of: it rebuilds the same tree, and is
// its bill of materials. It names no mirror.
type Lock struct {
	Version  int             `json:"version"` // of this format: 1
	Suite    string          `json:"suite"`   // as in Options
	Variant  string          `json:"variant"` // as in Options
	Arch     string          `json:"arch"`    // Debian's name: "amd64"
	Date     time.Time       `json:"date"`    // of the newest index; also the time of every file that the build itself makes
	Packages []LockedPackage `json:"packages"`
}

// A LockedPackage is one .deb. Archive is the pocket that had it, such as
// "bookworm-security"; Filename is below that archive's base URL.
type LockedPackage struct {
	Name      string `json:"name"`
	Version   string `json:"version"`
	Arch      string `json:"arch"`
	SHA256    string `json:"sha256"`
	SizeBytes int64  `json:"size"`
	Filename  string `json:"filename"`
	Archive   string `json:"archive"`
}

// ReadLock reads a lock file and checks it as Build does.
func ReadLock(r io.Reader) (*Lock, error) {
	raw, err := readAllLimited(r, maxLock)
	if err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	l := &Lock{}
	if err := d.Decode(l); err != nil {
		return nil, fmt.Errorf("read lock: %w", err)
	}
	return l, l.check()
}

// WriteTo writes the lock file: the same lock gives the same bytes.
func (l *Lock) WriteTo(w io.Writer) (int64, error) {
	raw, err := json.MarshalIndent(l, "", "  ")
	if err != nil {
		return 0, err
	}
	n, err := w.Write(append(raw, '\n'))
	return int64(n), err
}

// check refuses a lock that no build has written.
func (l *Lock) check() error {
	if l.Version != lockVersion {
		return fmt.Errorf("lock has format %d, this program knows %d", l.Version, lockVersion)
	}
	s, err := lookupSuite(l.Suite)
	if err != nil {
		return fmt.Errorf("lock: %w", err)
	}
	return l.checkPackages(s)
}

// checkPackages refuses a lock that is not for s.
func (l *Lock) checkPackages(s suite) error {
	if l.Date.IsZero() || len(l.Packages) == 0 {
		return fmt.Errorf("lock has no date or no packages")
	}
	for i, p := range l.Packages {
		isPocket := func(k pocket) bool { return k.name == p.Archive }
		if !isPackageName(p.Name) || p.Version == "" || !isSHA256(p.SHA256) || p.SizeBytes <= 0 || !isPoolPath(p.Filename) ||
			p.Arch != l.Arch && p.Arch != "all" || !slices.ContainsFunc(s.pockets, isPocket) {
			return fmt.Errorf("lock entry %d, %.60q, is not usable", i+1, p.Name)
		}
		if i > 0 && l.Packages[i-1].Name >= p.Name {
			return fmt.Errorf("lock has %s out of order or twice", p.Name)
		}
	}
	return nil
}

// newLock locks a resolved set, which is sorted by name.
func newLock(o Options, date time.Time, set []*available) *Lock {
	l := &Lock{Version: lockVersion, Suite: o.Suite, Variant: o.Variant, Arch: o.Arch, Date: date.UTC()}
	for _, a := range set {
		l.Packages = append(l.Packages, LockedPackage{
			Name: a.name, Version: a.version, Arch: a.arch, SHA256: a.digest.sha256, SizeBytes: a.digest.size,
			Filename: a.filename, Archive: a.archive,
		})
	}
	return l
}

// fileName is how dpkg calls the package's files below info: packages that may
// be there once per architecture carry it.
func (p LockedPackage) fileName(multiArch string) string {
	if strings.TrimSpace(multiArch) == "same" {
		return p.Name + ":" + p.Arch
	}
	return p.Name
}

package offline

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"cupola/rootfs/registry"
	"cupola/server/bosh/create"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/release"
)

// Library holds the jobs of releases.
type Library struct {
	Registries registry.Config
	Say        func(what string) // is called before slow steps; may be nil

	dir   string           // where jobs are unpacked
	named []*source        // what users named
	open  map[string]*jobs // by what they are read from
}

// source is a release that a user named. Its version is "" for a directory, which
// stands for any.
type source struct {
	path, name, version string
	jobs                *jobs
}

// Open reads the releases at some paths: tarballs and directories. The caller closes
// the library.
func Open(ctx context.Context, paths []string) (*Library, error) {
	dir, err := os.MkdirTemp("", "cupola-render-")
	if err != nil {
		return nil, err
	}
	l := &Library{dir: dir, open: map[string]*jobs{}}
	for _, path := range paths {
		s, err := l.source(ctx, path)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("--release %s: %w", path, err), l.Close())
		}
		l.named = append(l.named, s)
	}
	return l, nil
}

// Close removes what was unpacked.
func (l *Library) Close() error {
	var faults []error
	for _, j := range l.open {
		faults = append(faults, j.root.Close())
	}
	return errors.Join(append(faults, os.RemoveAll(l.dir))...)
}

func (l *Library) source(ctx context.Context, path string) (*source, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		name, err := create.Name(path)
		if err != nil {
			return nil, err
		}
		j, err := l.opened(path, path, "jobs")
		return &source{path, name, "", j}, err
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	j, m, err := l.tarball(ctx, path, f, "")
	if err != nil {
		return nil, err
	}
	return &source{path, m.Name, m.Version, j}, nil
}

// jobs is a directory with a directory for each job, within a root that links do not leave.
type jobs struct {
	root   *os.Root
	within string
}

// Open opens a file by its path in a release image.
func (j *jobs) Open(name string) (fs.File, error) {
	within, ok := strings.CutPrefix(name, jobsDir)
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return j.root.FS().Open(path.Join(j.within, within))
}

// jobsDir is where an image has the jobs of its release.
const jobsDir = "var/vcap/jobs-src"

// opened are the jobs in a directory within another one, which links do not leave; key is
// what they are read from.
func (l *Library) opened(key, dir, within string) (*jobs, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	if _, err := root.Stat(within); err != nil {
		return nil, errors.Join(err, root.Close())
	}
	j := &jobs{root, within}
	l.open[key] = j
	return j, nil
}

// Job reads a job, as bosh.Resolver.Job does.
func (l *Library) Job(ctx context.Context, of manifest.Image, name string) (release.Job, error) {
	j, err := l.find(ctx, of)
	if err != nil {
		return release.Job{}, err
	}
	return release.Read(j, name)
}

// find finds the jobs of a release: those that a user named go first.
func (l *Library) find(ctx context.Context, of manifest.Image) (*jobs, error) {
	a := of.Archive
	if a == (manifest.Archive{}) {
		if j := l.open[of.Reference]; j != nil {
			return j, nil
		}
		return l.image(ctx, of)
	}
	var others []string
	for _, s := range l.named {
		switch {
		case s.name != a.Name:
		case s.version == "" || s.version == a.Version || a.Version == "latest":
			return s.jobs, nil
		default:
			others = append(others, s.version)
		}
	}
	if j := l.open[a.URL]; a.URL != "" && j != nil {
		return j, nil
	}
	if a.URL != "" {
		return l.download(ctx, a)
	}
	if others != nil {
		return nil, fmt.Errorf("release '%s/%s' is not here: --release has version %s", a.Name, a.Version, strings.Join(others, ", "))
	}
	return nil, fmt.Errorf("release '%s/%s' is not here: give its tarball or its directory with --release", a.Name, a.Version)
}

func (l *Library) say(format string, args ...any) {
	if l.Say != nil {
		l.Say(fmt.Sprintf(format, args...))
	}
}

package tarball

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"strings"

	"cupola/rootfs/unpack"
	"cupola/server/bosh/release"
	"cupola/server/uploads"
	"cupola/store/blob"
	"cupola/store/cf"
)

// openArchive is the file of an archive.
type openArchive struct{ *os.File }

func openRested(t *blob.Temp) (*openArchive, error) {
	f, err := os.Open(t.Name())
	return &openArchive{f}, err
}

// maxSpec bounds the spec of a job, in bytes.
const maxSpec = 1 << 20

// spec reads job.MF.
func (a *openArchive) spec() ([]byte, error) {
	if _, err := a.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	plain, err := unpack.Decompress(a)
	if err != nil {
		return nil, err
	}
	defer plain.Close()
	t := tar.NewReader(plain)
	for {
		h, err := t.Next()
		if err == io.EOF {
			return nil, refuse("it has no job.MF")
		}
		if err != nil {
			return nil, err
		}
		if path.Clean(h.Name) == "job.MF" && h.Typeflag == tar.TypeReg {
			return io.ReadAll(io.LimitReader(t, maxSpec+1))
		}
	}
}

func (r *reader) jobs(m *release.Manifest, of *cf.BOSHRelease) error {
	for _, a := range m.Jobs {
		job := cf.BOSHReleaseJob{Name: a.Name, Fingerprint: cmp.Or(a.Fingerprint, a.Version)}
		var err error
		job.Digest, err = r.take("job", "jobs", a, func(f *openArchive) error {
			if err := uploads.Droplet(r.ctx, f.File); err != nil {
				return err
			}
			text, err := f.spec()
			if err != nil {
				return err
			}
			spec, err := release.ParseSpec(a.Name, text)
			if err != nil {
				return refusal{err}
			}
			job.Packages = spec.Packages
			return nil
		})
		if err != nil {
			return err
		}
		of.Jobs = append(of.Jobs, job)
	}
	return nil
}

func (r *reader) packages(m *release.Manifest, of *cf.BOSHRelease) error {
	all, err := release.Ordered(m.Packages)
	if err != nil {
		return refusal{err}
	}
	for _, a := range all {
		digest, err := r.take("package", "packages", a, r.sound)
		if err != nil {
			return err
		}
		of.Packages = append(of.Packages, cf.BOSHReleasePackage{Name: a.Name, Fingerprint: cmp.Or(a.Fingerprint, a.Version), Dependencies: a.Dependencies, Digest: digest})
	}
	return nil
}

// compiled takes the compiled packages, and checks that jobs name no package that
// the release lacks.
func (r *reader) compiled(m *release.Manifest, of *cf.BOSHRelease) error {
	all, err := release.Ordered(m.Compiled)
	if err != nil {
		return refusal{err}
	}
	for _, a := range all {
		stemcellOS, _, ok := strings.Cut(a.Stemcell, "/")
		if !ok || stemcellOS == "" {
			return refuse("compiled package '%s': its stemcell is %.100q; want OS/VERSION", a.Name, a.Stemcell)
		}
		digest, err := r.take("compiled package", "compiled_packages", a, r.sound)
		if err != nil {
			return err
		}
		compiled := cf.BOSHReleaseCompiled{OS: stemcellOS, Digest: digest}
		if p := of.Package(a.Name); p != nil {
			p.Compiled = append(p.Compiled, compiled)
			continue
		}
		of.Packages = append(of.Packages, cf.BOSHReleasePackage{Name: a.Name, Fingerprint: cmp.Or(a.Fingerprint, a.Version), Dependencies: a.Dependencies, Compiled: []cf.BOSHReleaseCompiled{compiled}})
	}
	var faults []error
	for _, j := range of.Jobs {
		for _, name := range j.Packages {
			if of.Package(name) == nil {
				faults = append(faults, fmt.Errorf("job '%s' references missing package '%s'", j.Name, name))
			}
		}
	}
	if faults != nil {
		return refusal{errors.Join(faults...)}
	}
	return nil
}

func (r *reader) sound(f *openArchive) error { return uploads.Droplet(r.ctx, f.File) }

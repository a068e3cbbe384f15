package api

import (
	"errors"
	"fmt"
	"io"
	"net/http"

	"cupola/server/control/stacks"
	"cupola/server/uploads"
	"cupola/store"
	"cupola/store/cf"
)

// uploadBuildpack takes a buildpack's zip. What is no buildpack is refused at
// once; what does not suit the row fails the job, as in Cloud Controller,
// whose clients read those errors from there.
func uploadBuildpack(c *call) (*response, error) {
	if err := c.tx(true, func() error { _, err := c.openBuildpack(); return err }); err != nil {
		return nil, err
	}
	u, err := c.readUpload()
	if err != nil {
		return nil, err
	}
	defer u.discard()
	if u.bits == nil {
		return nil, badBuildpack("A buildpack zip file must be uploaded as 'bits'")
	}
	stack, err := checkBuildpackBits(c, u)
	if err != nil {
		return nil, err
	}
	b, err := u.bits.Commit()
	if err != nil {
		return nil, err
	}
	return inTx(func(c *call) (*response, error) { return c.keepBuildpack(u.name, b.Digest, stack) })(c)
}

func badBuildpack(format string, args ...any) error {
	return cf.Unprocessable("Uploaded buildpack file is invalid: "+format, args...)
}

func checkBuildpackBits(c *call, u *upload) (stack string, err error) {
	info, err := u.bits.Stat()
	if err != nil {
		return "", err
	}
	magic := make([]byte, 4)
	if _, err := u.bits.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return "", err
	}
	switch {
	case info.Size() == 0:
		return "", badBuildpack("%s cannot be empty", u.name)
	case string(magic) != "PK\x03\x04":
		return "", badBuildpack(`%s is not a zip file. Buildpacks of lifecycle "buildpack" must be valid zip files.`, u.name)
	}
	stack, err = uploads.Buildpack(c.Context(), u.bits.File)
	if uploads.IsInvalid(err) {
		return "", badBuildpack("%s", err)
	}
	return stack, err
}

// openBuildpack is the buildpack of {guid}, if it may be uploaded to.
func (c *call) openBuildpack() (*cf.Buildpack, error) {
	b, err := c.buildpack()
	if err == nil && b.Locked {
		err = cf.Unprocessable("Buildpack is locked")
	}
	return b, err
}

// keepBuildpack gives a buildpack its bits. One that was built in is the
// operator's own from now on.
func (c *call) keepBuildpack(filename, digest, stack string) (*response, error) {
	b, err := c.openBuildpack()
	if err != nil {
		return nil, err
	}
	job := &cf.Job{Operation: "buildpack.upload", ResourceGUID: b.GUID, ResourceType: "buildpacks", State: cf.JobComplete}
	if fault := stacks.Suits(c.Session, b, stack); fault != nil {
		job.State, job.Errors = cf.JobFailed, []cf.JobError{jobError(fault)}
	} else {
		b.Filename, b.Digest, b.State, b.System = filename, digest, "READY", ""
		if stack != "" {
			b.Stack = stack
		}
		if err := store.Buildpacks.Update(c.Tx, b); err != nil {
			return nil, err
		}
		if err := stacks.BuildpackEvent(c.Session, "upload", b); err != nil {
			return nil, err
		}
	}
	res, err := c.job(job)
	if err != nil {
		return nil, err
	}
	res.status, res.body = http.StatusAccepted, viewBuildpack(c, b)
	return res, nil
}

// SystemBuildpack is a buildpack that comes with the daemon.
type SystemBuildpack struct {
	Name     string
	Filename string // "go_buildpack.zip"
	Digest   string // of its zip in the blob store
}

// SeedBuildpacks makes the buildpacks that come with the daemon, in their
// order, after those that are there. One that is there gets the new bits and
// keeps its position, and whether it is enabled and locked; one to which an
// operator uploaded bits of his own stays as it is.
func SeedBuildpacks(tx *store.Tx, system []SystemBuildpack) error {
	for _, s := range system {
		if err := seedBuildpack(tx, s); err != nil {
			return fmt.Errorf("seed the buildpack %s: %w", s.Name, err)
		}
	}
	return nil
}

func seedBuildpack(tx *store.Tx, s SystemBuildpack) error {
	have, err := store.Buildpacks.By(tx, "names", s.Name)
	if err != nil {
		return err
	}
	for _, b := range have {
		if b.System == s.Name && (b.Digest != s.Digest || b.Filename != s.Filename) {
			b.Digest, b.Filename, b.State = s.Digest, s.Filename, "READY"
			return store.Buildpacks.Update(tx, b)
		}
	}
	if len(have) > 0 {
		return nil
	}
	n, err := store.Buildpacks.Count(tx, store.Query{})
	if err != nil {
		return err
	}
	return store.Buildpacks.Insert(tx, &cf.Buildpack{Name: s.Name, State: "READY", Position: n + 1, Enabled: true,
		Lifecycle: "buildpack", Filename: s.Filename, Digest: s.Digest, System: s.Name})
}

package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"

	"cupola/server/control/stacks"
	"cupola/server/uploads"
	"cupola/store/cf"
)

// uploadBuildpack takes a buildpack's zip. What is not a zip is refused at once; a
// manifest.yml that cannot be read, or that does not suit the row, fails the job,
// as in Cloud Controller, whose clients read those errors from there.
func uploadBuildpack(c *call) (*response, error) {
	lifecycle := ""
	if err := c.tx(true, func() error {
		b, err := openBuildpack(c)
		if err == nil {
			lifecycle = b.Lifecycle
		}
		return err
	}); err != nil {
		return nil, err
	}
	u, err := readUpload(c)
	if err != nil {
		return nil, err
	}
	defer u.discard()
	if u.bits == nil {
		return nil, badBuildpack("A buildpack zip file must be uploaded as 'bits'")
	}
	bits, err := checkBuildpackBits(u, lifecycle)
	if err != nil {
		return nil, err
	}
	if bits.Fault == "" {
		b, err := u.bits.Commit()
		if err != nil {
			return nil, err
		}
		bits.Digest = b.Digest
	}
	return inTx(func(c *call) (*response, error) { return keepBuildpack(c, bits) })(c)
}

func badBuildpack(format string, args ...any) error {
	return cf.Unprocessable("Uploaded buildpack file is invalid: "+format, args...)
}

// checkBuildpackBits reads what an upload says of itself.
func checkBuildpackBits(u *upload, lifecycle string) (stacks.Bits, error) {
	if lifecycle == cf.LifecycleCNB {
		return checkCNBBits(u)
	}
	bits := stacks.Bits{Filename: u.name}
	info, err := u.bits.Stat()
	if err != nil {
		return bits, err
	}
	magic := make([]byte, 4)
	if _, err := u.bits.ReadAt(magic, 0); err != nil && !errors.Is(err, io.EOF) {
		return bits, err
	}
	if string(magic) != "PK\x03\x04" {
		fault := fmt.Sprintf(`%s is not a zip file. Buildpacks of lifecycle "buildpack" must be valid zip files.`, u.name)
		if info.Size() == 0 {
			fault += fmt.Sprintf(", %s cannot be empty", u.name)
		}
		return bits, badBuildpack("%s", fault)
	}
	bits.Stack, err = uploads.Buildpack(u.bits.File)
	if uploads.IsInvalid(err) {
		bits.Fault, err = err.Error(), nil
	}
	return bits, err
}

// tarMagic is in a tar file at byte 257 (CC: BuildpackUploadMessage::CNB_MIME).
const tarMagic = "ustar\x0000"

// checkCNBBits takes gzip archives and .cnb files (CC: BuildpackUploadMessage#is_archive).
func checkCNBBits(u *upload) (stacks.Bits, error) {
	bits := stacks.Bits{Filename: u.name}
	head := make([]byte, 257+len(tarMagic))
	n, err := u.bits.ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return bits, err
	}
	if head = head[:n]; bytes.HasPrefix(head, []byte("\x1f\x8b\x08")) || bytes.HasSuffix(head, []byte(tarMagic)) {
		return bits, nil
	}
	fault := fmt.Sprintf(`%s is not a gzip archive or cnb file. Buildpacks of lifecycle "cnb" must be valid gzip archives or cnb files.`, u.name)
	if n == 0 {
		fault += fmt.Sprintf(", %s cannot be empty", u.name)
	}
	return bits, badBuildpack("%s", fault)
}

// openBuildpack is the buildpack of {guid}, if it may be uploaded to.
func openBuildpack(c *call) (*cf.Buildpack, error) {
	b, err := findBuildpack(c)
	if err == nil && b.Locked {
		err = cf.Unprocessable("Buildpack is locked")
	}
	return b, err
}

// keepBuildpack gives a buildpack its bits.
func keepBuildpack(c *call, bits stacks.Bits) (*response, error) {
	b, err := openBuildpack(c)
	if err != nil {
		return nil, err
	}
	job := &cf.Job{Operation: "buildpack.upload", ResourceGUID: b.GUID, ResourceType: "buildpacks", State: cf.JobComplete}
	fault, err := stacks.Upload(c.Session, b, bits)
	if err != nil {
		return nil, err
	}
	if fault != nil {
		job.State, job.Errors = cf.JobFailed, []cf.JobError{jobError(fault)}
	}
	res, err := c.job(job)
	if err != nil {
		return nil, err
	}
	res.status, res.body = http.StatusAccepted, viewBuildpack(c, b)
	return res, nil
}

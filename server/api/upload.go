package api

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"

	"cupola/server/control/apps"
	"cupola/server/uploads"
	"cupola/store"
	"cupola/store/blob"
	"cupola/store/cf"
)

// maxUpload bounds an upload, in bytes: Cloud Controller's
// packages.max_package_size and droplets.max_upload_size.
const maxUpload = 1 << 30

// maxResources bounds the part resources of an upload, which is held in memory:
// only files worth remembering are in it. Bytes.
const maxResources = 16 << 20

// upload is a multipart body. Parts other than these are passed over.
type upload struct {
	bits      *blob.Temp // nil when there was none
	name      string     // the file name that the client gave
	resources string     // JSON of the files that are known; "" for none
}

func (u *upload) discard() {
	if u.bits != nil {
		u.bits.Discard()
	}
}

// readUpload streams a multipart body to disk.
func readUpload(c *call) (*upload, error) {
	c.received = true
	kind, params, err := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil, cf.Unprocessable("Upload must be a multipart/form-data body with the part 'bits'")
	}
	if c.Request.ContentLength > maxUpload {
		return nil, tooLarge()
	}
	if err := c.awaitUpload(); err != nil {
		return nil, err
	}
	u := &upload{}
	if err := u.read(multipart.NewReader(http.MaxBytesReader(c.w, c.Request.Body, maxUpload), params["boundary"]), c.s.Blobs); err != nil {
		u.discard()
		return nil, err
	}
	return u, nil
}

func (u *upload) read(r *multipart.Reader, blobs *blob.Store) error {
	for {
		part, err := r.NextPart()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return brokenForm(err)
		}
		if err := uploadError(u.readPart(part, blobs)); err != nil {
			return err
		}
	}
}

func (u *upload) readPart(part *multipart.Part, blobs *blob.Store) error {
	if part.FormName() == "resources" {
		text, err := io.ReadAll(io.LimitReader(part, maxResources+1))
		if len(text) > maxResources {
			err = cf.Unprocessable("Resources are larger than %d bytes", maxResources)
		}
		u.resources = string(text)
		return err
	}
	if part.FormName() != "bits" || part.FileName() == "" {
		return nil
	}
	if u.bits != nil {
		return cf.Unprocessable("Upload has the part 'bits' twice")
	}
	t, err := blobs.Temp()
	if err != nil {
		return err
	}
	u.bits, u.name = t, part.FileName()
	_, err = io.Copy(t, part)
	return err
}

func tooLarge() error {
	return cf.Errorf(cf.RequestTooLarge, "Bad request: The upload is larger than %d bytes", int64(maxUpload))
}

// brokenForm is what is wrong with a body whose parts cannot be separated.
func brokenForm(err error) error {
	var over *http.MaxBytesError
	if errors.As(err, &over) {
		return tooLarge()
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return brokenBody(err)
	}
	return cf.Errorf(cf.MessageParseError, "Request invalid due to parse error: the multipart body is broken")
}

// uploadError distinguishes the client's faults from the daemon's.
func uploadError(err error) error {
	var over *http.MaxBytesError
	var e *cf.Error
	switch {
	case err == nil || errors.As(err, &e):
		return err
	case errors.As(err, &over) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, os.ErrDeadlineExceeded) || strings.HasPrefix(err.Error(), "multipart:"):
		return brokenForm(err)
	}
	return err
}

// uploadPackage takes an app's files, and answers when the package is READY:
// the CLI then has nothing to wait for.
func uploadPackage(c *call) (*response, error) {
	var last string
	if err := c.tx(true, func() (err error) { last, err = lastBits(c); return err }); err != nil {
		return nil, err
	}
	u, err := readUpload(c)
	if err != nil {
		return nil, err
	}
	defer u.discard()
	known, err := parseResources(u.resources)
	if err != nil {
		return nil, err
	}
	in := uploads.Upload{Zip: u.bits, Resources: known, Last: last, Pool: func(sha1 string, size int64) (uploads.Known, bool) { return knownFile(c, sha1, size) }}
	packed, err := uploads.Pack(c.Context(), c.s.Blobs, in)
	if uploads.IsInvalid(err) {
		if err := forgetLost(c, err); err != nil {
			return nil, err
		}
		return nil, cf.Errorf(cf.BitsInvalid, "The app upload is invalid: %s", err)
	}
	if err != nil {
		return nil, err
	}
	return inTx(func(c *call) (*response, error) { return keepBits(c, packed) })(c)
}

// forgetLost forgets the known files of a blob that turned out to be gone or damaged, so
// that the next push uploads them.
func forgetLost(c *call, err error) error {
	digest, cause := uploads.Lost(err)
	if digest == "" {
		return nil
	}
	c.s.Log.WarnContext(c.Context(), "known files were forgotten", "digest", digest, "err", cause)
	return c.tx(true, func() error { return store.Resources.Forget(c.Tx, digest) })
}

// lastBits is the digest of the bits that an app has, if the package {guid} of it awaits others.
func lastBits(c *call) (string, error) {
	p, app, err := ofApp(c, store.Packages, packageApp)
	if err == nil {
		err = apps.AwaitsBits(c.Session, p)
	}
	if err != nil {
		return "", err
	}
	return apps.LastBits(c.Session, app)
}

func parseResources(text string) ([]uploads.Resource, error) {
	if text == "" {
		return nil, nil
	}
	var in []resourceRequest
	if err := json.Unmarshal([]byte(text), &in); err != nil {
		return nil, cf.Unprocessable("Resources must be an array of resources")
	}
	var out []uploads.Resource
	for _, r := range in {
		mode, err := uploads.ParseMode(r.Mode)
		if err != nil {
			return nil, cf.Errorf(cf.BitsInvalid, "The app upload is invalid: %s", err)
		}
		out = append(out, uploads.Resource{Path: r.Path, Mode: mode, SHA1: r.Checksum.Value, Size: r.Size})
	}
	return out, nil
}

func knownFile(c *call, sha1 string, size int64) (known uploads.Known, ok bool) {
	err := c.s.Store.Read(c.Context(), func(tx *store.Tx) error {
		file, found, err := store.Resources.Find(tx, sha1, size)
		known, ok = uploads.Known(file), found
		return err
	})
	return known, ok && err == nil
}

func keepBits(c *call, packed *uploads.Packed) (*response, error) {
	p, app, err := ofApp(c, store.Packages, packageApp)
	if err != nil {
		return nil, err
	}
	if err := apps.KeepBits(c.Session, app, p, packed); err != nil {
		return nil, err
	}
	return ok(viewPackage(c, p))
}

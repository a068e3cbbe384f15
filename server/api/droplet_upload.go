package api

import (
	"net/http"
	"strings"

	"cupola/server/control/apps"
	"cupola/server/control/change"
	"cupola/server/uploads"
	"cupola/store"
	"cupola/store/cf"
)

type dropletRequest struct {
	ProcessTypes  change.Field[map[string]string] `json:"process_types"`
	Relationships struct {
		App ref `json:"app"`
	} `json:"relationships"`
}

func (r dropletRequest) Validate() []string { return apps.TypeFaults(r.ProcessTypes.V) }

// createDroplet makes a droplet that awaits its upload, or a copy of another.
func createDroplet(c *call) (*response, error) {
	var req dropletRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	d, err := apps.CreateDroplet(c.Session, req.Relationships.App.GUID(), c.Request.URL.Query().Get("source_guid"), req.ProcessTypes.Or(map[string]string{"web": ""}))
	if err != nil {
		return nil, err
	}
	return created(viewDroplet(c, d))
}

// uploadDroplet takes a droplet's bits. Its job is done when it answers.
func uploadDroplet(c *call) (*response, error) {
	if err := c.tx(true, func() error { _, _, err := awaitingDroplet(c); return err }); err != nil {
		return nil, err
	}
	u, err := readUpload(c)
	if err != nil {
		return nil, err
	}
	defer u.discard()
	if err := checkDropletBits(c, u); err != nil {
		return nil, err
	}
	b, err := u.bits.Commit()
	if err != nil {
		return nil, err
	}
	return inTx(func(c *call) (*response, error) { return keepDroplet(c, b.Digest, b.Size) })(c)
}

func badDroplet(format string, args ...any) error {
	return cf.Unprocessable("Uploaded droplet file is invalid: "+format, args...)
}

func checkDropletBits(c *call, u *upload) error {
	if u.bits == nil {
		return badDroplet("A droplet tgz file must be uploaded as 'bits'")
	}
	if !strings.HasSuffix(u.name, ".tgz") && !strings.HasSuffix(u.name, ".tar.gz") {
		return badDroplet("%s is not a tgz", u.name)
	}
	info, err := u.bits.Stat()
	if err != nil {
		return err
	}
	if info.Size() == 0 {
		return badDroplet("%s cannot be empty", u.name)
	}
	err = uploads.Droplet(c.Context(), u.bits.File)
	if uploads.IsInvalid(err) {
		return badDroplet("%s", err)
	}
	return err
}

// awaitingDroplet is the droplet of {guid}, if it awaits its upload.
func awaitingDroplet(c *call) (*cf.Droplet, *cf.App, error) {
	d, app, err := ofApp(c, store.Droplets, dropletApp)
	if err == nil {
		err = apps.AwaitsUpload(d)
	}
	return d, app, err
}

func keepDroplet(c *call, digest string, size int64) (*response, error) {
	d, app, err := ofApp(c, store.Droplets, dropletApp)
	if err != nil {
		return nil, err
	}
	if err := apps.KeepDroplet(c.Session, app, d, digest, size); err != nil {
		return nil, err
	}
	res, err := c.accepted("droplet.upload", "droplets", d.GUID)
	if err != nil {
		return nil, err
	}
	res.status, res.body = http.StatusAccepted, viewDroplet(c, d)
	return res, nil
}

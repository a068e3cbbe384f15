package api

import (
	"fmt"
	"net/http"
	"strings"

	"cupola/runtime/contract"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
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

func (r dropletRequest) Validate() []string {
	_, unnamed := r.ProcessTypes.V[""]
	faults := control.Must(!unnamed, "Process types key must not be empty",
		len(r.ProcessTypes.V) <= contract.MaxProcesses, fmt.Sprintf("Process types may have at most %d entries, it has %d", contract.MaxProcesses, len(r.ProcessTypes.V)))
	for kind, command := range r.ProcessTypes.V {
		if err := contract.CheckProcess(kind, command); err != nil {
			faults = append(faults, "Process types: "+err.Error())
		}
	}
	return faults
}

// createDroplet makes a droplet that awaits its upload, or a copy of another.
func createDroplet(c *call) (*response, error) {
	var req dropletRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	source := c.Request.URL.Query().Get("source_guid")
	app, err := apps.DropletTarget(c.Session, req.Relationships.App.guid(), source)
	if err != nil {
		return nil, err
	}
	d := &cf.Droplet{State: cf.DropletAwaiting, Lifecycle: app.Lifecycle, Stack: app.Lifecycle.Stack, ProcessTypes: req.ProcessTypes.Or(map[string]string{"web": ""})}
	if source != "" {
		if d, err = apps.CopyOf(c.Session, source); err != nil {
			return nil, err
		}
	}
	d.AppGUID = app.GUID
	if err := store.Droplets.Insert(c.Tx, d); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppDropletCreate, app, doc{"droplet_guid": d.GUID}); err != nil {
		return nil, err
	}
	return created(viewDroplet(c, d))
}

// uploadDroplet takes a droplet's bits. Its job is done when it answers.
func uploadDroplet(c *call) (*response, error) {
	if err := c.tx(true, func() error { _, _, err := c.awaitingDroplet(); return err }); err != nil {
		return nil, err
	}
	u, err := c.readUpload()
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
	return inTx(func(c *call) (*response, error) { return c.keepDroplet(b.Digest, b.Size) })(c)
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
func (c *call) awaitingDroplet() (*cf.Droplet, *cf.App, error) {
	d, app, err := ofApp(c, store.Droplets, dropletApp)
	if err == nil && d.State != cf.DropletAwaiting {
		err = cf.Unprocessable("Droplet may be uploaded only once. Create a new droplet to upload bits.")
	}
	return d, app, err
}

func (c *call) keepDroplet(digest string, size int64) (*response, error) {
	d, app, err := c.awaitingDroplet()
	if err != nil {
		return nil, err
	}
	d.State, d.Digest, d.Size = cf.DropletStaged, digest, size
	if err := store.Droplets.Update(c.Tx, d); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppDropletUpload, app, doc{"droplet_guid": d.GUID}); err != nil {
		return nil, err
	}
	res, err := c.accepted("droplet.upload", "droplets", d.GUID)
	if err != nil {
		return nil, err
	}
	res.status, res.body = http.StatusAccepted, viewDroplet(c, d)
	return res, nil
}

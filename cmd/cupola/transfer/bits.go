package transfer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/push"
	"cupola/store/cf"
)

// copied is the annotation of an app that says which files it was copied with: when they are those that it has here, they
// are not copied again.
const copied = "cupola.dev/copied-from"

// The kinds of bits.
const (
	none    = ""
	files   = "files"
	droplet = "droplet"
	image   = "image"
)

// bits are what an app is made of: a package, of files or an image, or a droplet.
type bits struct {
	kind, guid string
	image      string
	credential cf.Credential     // for the image
	processes  map[string]string // of a droplet
	source     string            // GUID of the package of a droplet, which is copied, too; "": none is
}

// String says what is copied.
func (b bits) String() string {
	switch b.kind {
	case none:
		return "its manifest alone, since it has no files"
	case image:
		return "image " + b.image
	case droplet:
		if b.source != "" {
			return "droplet and package"
		}
	}
	return b.kind
}

// bitsOf finds what an app runs, or what it has last had uploaded.
func (c *copier) bitsOf(ctx context.Context, a app) (b bits, err error) {
	current, err := c.current(ctx, c.from, a.GUID)
	if err != nil {
		return b, err
	}
	p, err := c.packageOf(ctx, a, current)
	switch {
	case err != nil:
		return b, err
	case c.restore != nil:
		return c.restore.bits(ctx, current, p)
	case current != nil && current.Lifecycle.Type != "docker" && (c.Droplets || p.State != ready):
		return bits{kind: droplet, guid: current.GUID, processes: current.Processes}, nil
	case p.State != ready:
		return b, nil
	case p.Type == "docker":
		return bits{kind: image, guid: p.GUID, image: p.Data.Image}, nil
	}
	return bits{kind: files, guid: p.GUID}, nil
}

// ready is the state of a package that can be downloaded and staged.
const ready = "READY"

// packageOf is the package of the app's droplet, or without a droplet the newest one. It is not ready if there is none: a droplet may
// have been uploaded, and Cloud Foundry deletes packages that are old.
func (c *copier) packageOf(ctx context.Context, a app, current *dropletView) (p packageView, err error) {
	if current != nil {
		if at := current.Links.Package.Href; at == "" || c.from.Call(ctx, http.MethodGet, at, nil, &p) != nil {
			return packageView{}, ctx.Err()
		}
		return p, nil
	}
	all, err := capi.List[packageView](ctx, c.from, "/v3/packages?"+url.Values{"app_guids": {a.GUID}, "states": {ready}, "order_by": {"-created_at"}}.Encode())
	if len(all) > 0 {
		p = all[0]
	}
	return p, err
}

type dropletView struct {
	GUID, State, Error string
	Processes          map[string]string `json:"process_types"`
	Lifecycle          struct{ Type string }
	Links              struct{ Package struct{ Href string } }
}

type packageView struct {
	GUID, Type, State string
	Data              struct{ Image, Error string }
}

// current is the droplet that an app has, or nil.
func (c *copier) current(ctx context.Context, at *capi.Client, app string) (*dropletView, error) {
	all, err := capi.List[dropletView](ctx, at, "/v3/apps/"+app+"/droplets?current=true")
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// put gives an app there the bits, unless it has them. It says what it did.
func (c *copier) put(ctx context.Context, a app, guid string, b bits) (string, error) {
	if b.kind == none {
		return "its manifest alone, since it has no files", nil
	}
	origin := c.from.API + "/v3/apps/" + a.GUID + "#" + b.guid
	var there struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := c.to.Call(ctx, http.MethodGet, "/v3/apps/"+guid, nil, &there); err != nil {
		return "", err
	}
	has, err := c.current(ctx, c.to, guid)
	if err != nil {
		return "", err
	}
	if has != nil && there.Metadata.Annotations[copied] == origin {
		return b.kind + " there already", nil
	}
	made, err := c.make(ctx, guid, b)
	if err != nil {
		return "", err
	}
	if err := c.to.Call(ctx, http.MethodPatch, "/v3/apps/"+guid+"/relationships/current_droplet", capi.ToOne(made), nil); err != nil {
		return "", err
	}
	if has != nil { // what runs has the files of before
		if err := c.to.Call(ctx, http.MethodPost, "/v3/apps/"+guid+"/actions/stop", nil, nil); err != nil {
			return "", err
		}
	}
	return b.String() + " copied", c.to.Call(ctx, http.MethodPatch, "/v3/apps/"+guid, capi.Doc{"metadata": capi.Doc{"annotations": capi.Doc{copied: origin}}}, nil)
}

// make makes a droplet of bits there.
func (c *copier) make(ctx context.Context, app string, b bits) (string, error) {
	owner := capi.Doc{"app": capi.ToOne(app)}
	switch b.kind {
	case droplet:
		if b.source != "" {
			if _, err := c.sendPackage(ctx, owner, b.source); err != nil {
				return "", err
			}
		}
		var d dropletView
		if err := c.to.Call(ctx, http.MethodPost, "/v3/droplets", capi.Doc{"relationships": owner, "process_types": b.processes}, &d); err != nil {
			return "", err
		}
		return d.GUID, c.send(ctx, "/v3/droplets/"+b.guid, "/v3/droplets/"+d.GUID, "droplet.tgz")
	case image:
		data := capi.Doc{"image": b.image}
		if b.credential.Username != "" {
			data["username"], data["password"] = b.credential.Username, b.credential.Password
		}
		var p packageView
		if err := c.to.Call(ctx, http.MethodPost, "/v3/packages", capi.Doc{"type": "docker", "relationships": owner, "data": data}, &p); err != nil {
			return "", err
		}
		return c.stage(ctx, app, p.GUID)
	}
	p, err := c.sendPackage(ctx, owner, b.guid)
	if err != nil {
		return "", err
	}
	return c.stage(ctx, app, p)
}

// stage makes a droplet of a package there, once a build of a copy that was
// interrupted has ended.
func (c *copier) stage(ctx context.Context, app, pkg string) (droplet string, err error) {
	if err := capi.AwaitBuilds(ctx, c.to, app); err != nil {
		return "", err
	}
	return capi.Stage(ctx, c.to, pkg)
}

// sendPackage copies a package of files.
func (c *copier) sendPackage(ctx context.Context, owner capi.Doc, from string) (guid string, err error) {
	var p packageView
	if err := c.to.Call(ctx, http.MethodPost, "/v3/packages", capi.Doc{"type": "bits", "relationships": owner}, &p); err != nil {
		return "", err
	}
	return p.GUID, c.send(ctx, "/v3/packages/"+from, "/v3/packages/"+p.GUID, "package.zip")
}

// send uploads what can be downloaded of a package or droplet, and waits until it can be used.
func (c *copier) send(ctx context.Context, from, to, name string) error {
	body, err := c.from.Download(ctx, from+"/download")
	if err != nil {
		return fmt.Errorf("download its files: %w", err)
	}
	defer body.Close()
	f, err := os.CreateTemp("", "cupola-copy-*")
	if err != nil {
		return err
	}
	defer f.Close()
	if err := os.Remove(f.Name()); err != nil { // now, so that nothing is left when the command is killed
		return err
	}
	size, err := io.Copy(f, body)
	if err != nil {
		return fmt.Errorf("download its files: %w", err)
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return err
	}
	if err := (&push.Pusher{Client: c.to, Show: c.show}).Send(ctx, to, name, f, size); err != nil {
		return fmt.Errorf("upload its files: %w", err)
	}
	return c.usable(ctx, to)
}

// usable waits until what was uploaded can be used.
func (c *copier) usable(ctx context.Context, path string) error {
	for {
		var is struct {
			State, Error string
			Data         struct{ Error string }
		}
		if err := c.to.Call(ctx, http.MethodGet, path, nil, &is); err != nil {
			return err
		}
		switch is.State {
		case ready, "STAGED":
			return nil
		case "FAILED", "EXPIRED":
			return errors.New("upload its files: " + is.Error + is.Data.Error)
		}
		if err := capi.Pause(ctx, 200*time.Millisecond); err != nil {
			return err
		}
	}
}

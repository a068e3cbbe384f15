package apps

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// DropletTarget is the app that a droplet is made for. For a copy it is a 404
// when the actor does not see it, as in Cloud Controller.
func DropletTarget(c *control.Session, guid, source string) (*cf.App, error) {
	_, err := store.Apps.Visible(c.Tx, guid, c.Scope)
	if err != nil && source == "" {
		err = control.Unprocessable(err, "App with guid %q does not exist, or you do not have access to it.", guid)
	}
	if err != nil {
		c.Checked = true
		return nil, err
	}
	return c.App(guid)
}

// CopyOf is a new droplet with the bits of another.
func CopyOf(c *control.Session, guid string) (*cf.Droplet, error) {
	d, err := store.Droplets.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		return nil, err
	}
	if d.State != cf.DropletStaged {
		return nil, cf.Unprocessable("source droplet is not staged")
	}
	d.Resource, d.Metadata, d.PackageGUID, d.BuildGUID = cf.Resource{}, cf.Metadata{}, "", ""
	return d, nil
}

// PackageSuits refuses an image for an app that is staged, and bits for one
// that is not.
func PackageSuits(p *cf.Package, app *cf.App) error {
	docker := app.Lifecycle.Type == cf.LifecycleDocker
	switch {
	case p.Type == "docker" && !docker:
		return cf.Unprocessable("Cannot create Docker package for a buildpack app.")
	case p.Type == "bits" && docker:
		return cf.Unprocessable("Cannot create bits package for a Docker app.")
	}
	return nil
}

// PackageTarget is the app that a package is made for.
func PackageTarget(c *control.Session, guid string) (*cf.App, error) {
	if _, err := store.Apps.Visible(c.Tx, guid, c.Scope); err != nil {
		c.Checked = true
		return nil, control.Unprocessable(err, "App is invalid. Ensure it exists and you have access to it.")
	}
	return c.App(guid)
}

// CopyBits gives a package the content of another one: they share the blob.
func CopyBits(c *control.Session, p *cf.Package, source string) error {
	from, err := store.Packages.Visible(c.Tx, source, c.Scope)
	if err != nil {
		return control.Unprocessable(err, "Source package is invalid. Ensure it exists and you have access to it.")
	}
	if _, err := c.App(from.AppGUID); err != nil {
		return err
	}
	p.Type, p.State, p.Digest, p.Size, p.Image, p.Credential = from.Type, from.State, from.Digest, from.Size, from.Image, from.Credential
	return nil
}

// TaskDroplet is the droplet that a task runs: one of the app, or "" for its current one.
func TaskDroplet(c *control.Session, app *cf.App, guid string) (string, error) {
	if guid == "" {
		guid = app.DropletGUID
	}
	if guid == "" {
		return "", cf.Unprocessable("Task must have a droplet. Specify droplet or assign current droplet to app.")
	}
	d, err := store.Droplets.Get(c.Tx, guid)
	if err == nil && d.AppGUID != app.GUID {
		err = cf.Errorf(cf.ResourceNotFound, "Droplet not found")
	}
	return guid, err
}

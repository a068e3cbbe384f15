package apps

import (
	"fmt"
	"slices"

	"cupola/runtime/contract"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/store"
	"cupola/store/cf"
)

// TypeFaults lists what is wrong with the process types of a droplet.
func TypeFaults(types map[string]string) []string {
	_, unnamed := types[""]
	faults := control.Must(!unnamed, "Process types key must not be empty",
		len(types) <= contract.MaxProcesses, fmt.Sprintf("Process types may have at most %d entries, it has %d", contract.MaxProcesses, len(types)))
	for kind, command := range types {
		if err := contract.CheckProcess(kind, command); err != nil {
			faults = append(faults, "Process types: "+err.Error())
		}
	}
	return faults
}

// CreateDroplet makes a droplet of an app that awaits its upload, or a copy of
// another one, if source names that.
func CreateDroplet(c *control.Session, guid, source string, types map[string]string) (*cf.Droplet, error) {
	app, err := dropletTarget(c, guid, source)
	if err != nil {
		return nil, err
	}
	d := &cf.Droplet{State: cf.DropletAwaiting, Lifecycle: app.Lifecycle, Stack: app.Lifecycle.Stack, ProcessTypes: types}
	if source != "" {
		if d, err = copyOf(c, source); err != nil {
			return nil, err
		}
	}
	d.AppGUID = app.GUID
	if err := store.Droplets.Insert(c.Tx, d); err != nil {
		return nil, err
	}
	data := audit.Data{"droplet_guid": d.GUID}
	if source != "" {
		data = c.Request(audit.Data{"source_droplet_guid": source}, "droplet_guid", d.GUID)
	}
	return d, c.AuditApp(audit.AppDropletCreate, app, data)
}

// dropletTarget is the app that a droplet is made for. For a copy it is a 404
// when the actor does not see it, as in Cloud Controller.
func dropletTarget(c *control.Session, guid, source string) (*cf.App, error) {
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

// copyOf is a new droplet with the bits of another.
func copyOf(c *control.Session, guid string) (*cf.Droplet, error) {
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

// AwaitsUpload checks that a droplet awaits its upload.
func AwaitsUpload(d *cf.Droplet) error {
	if d.State != cf.DropletAwaiting {
		return cf.Unprocessable("Droplet may be uploaded only once. Create a new droplet to upload bits.")
	}
	return nil
}

// KeepDroplet stores the uploaded bits of an app's droplet.
func KeepDroplet(c *control.Session, app *cf.App, d *cf.Droplet, digest string, size int64) error {
	if err := AwaitsUpload(d); err != nil {
		return err
	}
	d.State, d.Digest, d.Size = cf.DropletStaged, digest, size
	if err := store.Droplets.Update(c.Tx, d); err != nil {
		return err
	}
	return c.AuditApp(audit.AppDropletUpload, app, audit.Data{"droplet_guid": d.GUID})
}

// DropletDownloaded records that the bits of a droplet of an app were downloaded.
func DropletDownloaded(c *control.Session, app *cf.App, d *cf.Droplet) error {
	return c.AuditApp(audit.AppDropletDownload, app, audit.Data{"droplet_guid": d.GUID})
}

// DeleteDroplet deletes a droplet that its app does not use.
func DeleteDroplet(c *control.Session, app *cf.App, d *cf.Droplet) error {
	processes, err := store.Processes.By(c.Tx, "app_guids", app.GUID)
	if err != nil {
		return err
	}
	if app.DropletGUID == d.GUID || slices.ContainsFunc(processes, func(p *cf.Process) bool { return p.DropletGUID == d.GUID }) {
		return cf.Unprocessable("The droplet is currently used by the app")
	}
	if err := store.Droplets.Delete(c.Tx, d.GUID); err != nil {
		return err
	}
	return c.AuditApp(audit.AppDropletDelete, app, audit.Data{"droplet_guid": d.GUID})
}

package apps

import (
	"cupola/rootfs/reference"
	"cupola/runtime/lrp"
	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

// Cloud Controller's defaults of a staging container (its cloud_controller.yml).
const (
	stagingMemoryMB = 1024
	stagingDiskMB   = 6144
)

// StagingSize is what a staging container has that nobody asked another size
// for: the defaults, but on a small machine half of its largest cell, so that it
// can stage at all, and beside what runs.
func StagingSize(c *control.Session) (memoryMB, diskMB int) {
	var largest lrp.Cell
	for _, u := range c.Platform.Cells() {
		if u.MemoryMB > largest.MemoryMB {
			largest = u.Cell
		}
	}
	return min(stagingMemoryMB, max(1, largest.MemoryMB/2)), min(stagingDiskMB, max(1, largest.DiskMB/2))
}

// DockerBuild gives the build of an image what its registry asks for.
func DockerBuild(c *control.Session, b *cf.Build, p *cf.Package) error {
	if err := ImageAllowed(c, b.Lifecycle); err != nil || p.Type != "docker" {
		return err
	}
	ref, err := reference.Parse(desire.ImageScheme + p.Image)
	if err != nil {
		return cf.Unprocessable("%s", err)
	}
	if p.Credential.Username != "" {
		b.Credentials = cf.Credentials{ref.Host: p.Credential}
	}
	return nil
}

// Stagable is the package that a request wants staged, with its app.
func Stagable(c *control.Session, guid string) (*cf.Package, *cf.App, error) {
	p, err := store.Packages.Visible(c.Tx, guid, c.Scope)
	if err != nil {
		c.Checked = true
		return nil, nil, control.Unprocessable(err, "Unable to use package. Ensure that the package exists and you have access to it.")
	}
	app, err := c.App(p.AppGUID)
	if control.IsKind(err, cf.NotAuthorized) {
		err = cf.Unprocessable("Unable to use package. Ensure that the package exists and you have access to it.")
	}
	if err != nil {
		return nil, nil, err
	}
	if p.State != cf.PackageReady {
		return nil, nil, cf.Errorf(cf.BadRequest, "Bad request: Cannot stage package whose state is not ready.")
	}
	n, err := store.Builds.Count(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "states": {string(cf.BuildStaging)}}})
	if err == nil && n > 0 {
		err = cf.Errorf(cf.StagingInProgress, "Only one build can be STAGING at a time per application.")
	}
	return p, app, err
}

package apps

import (
	"fmt"
	"strings"

	"cupola/rootfs/reference"
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/desire"
	"cupola/server/uploads"
	"cupola/store"
	"cupola/store/cf"
)

// NewPackage is a package to be made for an app: a copy of Source, an image, or
// bits that will be uploaded.
type NewPackage struct {
	AppGUID    string
	Source     string // the GUID of a package; "" for none
	Type       string
	Image      string
	Credential cf.Credential
	Metadata   *change.Metadata
}

// CreatePackage makes a package.
func CreatePackage(c *control.Session, req NewPackage) (*cf.Package, error) {
	if req.Source == "" && req.Type != "bits" && req.Type != "docker" {
		c.Checked = true
		return nil, cf.Unprocessable("Type must be one of 'bits, docker'")
	}
	app, err := packageTarget(c, req.AppGUID)
	if err != nil {
		return nil, err
	}
	p := &cf.Package{AppGUID: app.GUID, Type: req.Type, State: cf.PackageAwaiting}
	if err := fillPackage(c, p, app, req); err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return nil, err
	}
	if err := store.Packages.Insert(c.Tx, p); err != nil {
		return nil, err
	}
	request := c.Asked
	if req.Source != "" {
		request = audit.Data{"source_package_guid": req.Source}
	}
	return p, c.AuditApp(audit.AppPackageCreate, app, c.Request(request, "package_guid", p.GUID))
}

// fillPackage gives a package the content that it has without an upload, if its
// type suits the app.
func fillPackage(c *control.Session, p *cf.Package, app *cf.App, req NewPackage) (err error) {
	if req.Source != "" {
		err = copyBits(c, p, req.Source)
	} else if p.Type == "docker" {
		p.State, p.Image, p.Credential = cf.PackageReady, req.Image, req.Credential
		err = control.Invalid(imageFaults(p.Image, p.Credential))
	}
	if err != nil {
		return err
	}
	return packageSuits(p, app)
}

func imageFaults(image string, as cf.Credential) []string {
	faults := control.Must(image != "", "Image can't be blank",
		(as.Username == "") == (as.Password == ""), "Username and password can only be given together")
	if strings.Contains(image, "://") {
		return append(faults, fmt.Sprintf("Docker URI [%s] should not contain scheme", image))
	}
	if _, err := reference.Parse(desire.ImageScheme + image); err != nil && image != "" {
		faults = append(faults, fmt.Sprintf("Invalid image name [%s]: %s", image, err))
	}
	return faults
}

// packageSuits refuses an image for an app that is staged, and bits for one
// that is not.
func packageSuits(p *cf.Package, app *cf.App) error {
	docker := app.Lifecycle.Type == cf.LifecycleDocker
	switch {
	case p.Type == "docker" && !docker:
		return cf.Unprocessable("Cannot create Docker package for a buildpack app.")
	case p.Type == "bits" && docker:
		return cf.Unprocessable("Cannot create bits package for a Docker app.")
	}
	return nil
}

// packageTarget is the app that a package is made for.
func packageTarget(c *control.Session, guid string) (*cf.App, error) {
	if _, err := store.Apps.Visible(c.Tx, guid, c.Scope); err != nil {
		c.Checked = true
		return nil, control.Unprocessable(err, "App is invalid. Ensure it exists and you have access to it.")
	}
	return c.App(guid)
}

// copyBits gives a package the content of another one: they share the blob.
func copyBits(c *control.Session, p *cf.Package, source string) error {
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

// PackageChange is a change of a package. Only one of an image has credentials.
type PackageChange struct {
	Username change.Field[string] `json:"username"`
	Password change.Field[string] `json:"password"`
	Metadata *change.Metadata     `json:"metadata"`
}

// UpdatePackage changes a package.
func UpdatePackage(c *control.Session, p *cf.Package, req PackageChange) error {
	if p.Type != "docker" && (req.Username.V != "" || req.Password.V != "") {
		return cf.Unprocessable("Cannot update Docker credentials for a buildpack app.")
	}
	p.Credential.Username, p.Credential.Password = req.Username.Or(p.Credential.Username), req.Password.Or(p.Credential.Password)
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return err
	}
	return store.Packages.Update(c.Tx, p)
}

// AwaitsBits checks that a package awaits its upload. The rows are not changed
// yet: an upload that breaks off can be made again.
func AwaitsBits(c *control.Session, p *cf.Package) error {
	if err := c.Feature("app_bits_upload"); err != nil {
		return err
	}
	if p.Type != "bits" {
		return cf.Unprocessable("Package type must be bits.")
	}
	if p.State != cf.PackageAwaiting {
		return cf.Errorf(cf.BitsAlreadyUploaded, "Bits may be uploaded only once. Create a new package to upload different bits.")
	}
	return nil
}

// LastBits is the digest of the bits that were uploaded last for an app; "" of none.
func LastBits(c *control.Session, app *cf.App) (digest string, err error) {
	p, err := store.Packages.First(c.Tx, store.Query{Where: map[string][]string{"app_guids": {app.GUID}, "states": {string(cf.PackageReady)}, "types": {"bits"}}, Order: "created_at", Desc: true})
	if store.IsNotFound(err) || store.IsDamaged(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return p.Digest, nil
}

// KeepBits gives a package of an app the bits that were uploaded.
func KeepBits(c *control.Session, app *cf.App, p *cf.Package, packed *uploads.Packed) error {
	if err := AwaitsBits(c, p); err != nil {
		return err
	}
	for _, f := range packed.Pool {
		if err := store.Resources.Remember(c.Tx, f.SHA1, f.Size, store.Resource{Digest: packed.Digest, Entry: f.Entry}); err != nil {
			return err
		}
	}
	p.State, p.Digest, p.Size = cf.PackageReady, packed.Digest, packed.Size
	if err := store.Packages.Update(c.Tx, p); err != nil {
		return err
	}
	c.Note(app, "Uploaded bits for app with guid %s", app.GUID)
	return c.AuditApp(audit.AppPackageUpload, app, audit.Data{"package_guid": p.GUID})
}

// PackageDownloaded records that the bits of a package of an app were downloaded.
func PackageDownloaded(c *control.Session, app *cf.App, p *cf.Package) error {
	return c.AuditApp(audit.AppPackageDownload, app, audit.Data{"package_guid": p.GUID})
}

// DeletePackage deletes a package of an app.
func DeletePackage(c *control.Session, app *cf.App, p *cf.Package) error {
	if err := store.Packages.Delete(c.Tx, p.GUID); err != nil {
		return err
	}
	return c.AuditApp(audit.AppPackageDelete, app, audit.Data{"package_guid": p.GUID})
}

// KnownFile reports whether a file needs no upload. It is remembered for longer
// then: it is still in use.
func KnownFile(c *control.Session, sha1 string, size int64) (bool, error) {
	file, known, err := store.Resources.Kept(c.Tx, sha1, size)
	if err == nil && known {
		err = store.Resources.Remember(c.Tx, sha1, size, file)
	}
	return known, err
}

package api

import (
	"fmt"
	"net/http"
	"strings"

	"cupola/rootfs/reference"
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/audit"
	"cupola/server/control/change"
	"cupola/server/desire"
	"cupola/store"
	"cupola/store/cf"
)

func packageApp(p *cf.Package) string { return p.AppGUID }

func viewPackage(c *call, p *cf.Package) doc {
	self := "/v3/packages/" + p.GUID
	data := doc{"error": control.OrNil(p.Error), "checksum": doc{"type": "sha256", "value": control.OrNil(p.Digest)}}
	links := doc{"self": c.link("%s", self), "app": c.link("/v3/apps/%s", p.AppGUID)}
	if p.Type == "bits" {
		links["upload"] = c.action("POST", "%s/upload", self)
		links["download"] = c.action("GET", "%s/download", self)
	} else {
		data = doc{"image": p.Image, "username": control.OrNil(p.Credential.Username), "password": nil}
		if p.Credential.Password != "" {
			data["password"] = redacted
		}
	}
	return with(resource(p.Resource), doc{"type": p.Type, "state": p.State, "data": data, "metadata": metadata(p.Metadata),
		"relationships": doc{"app": toOne(p.AppGUID)}, "links": links})
}

type packageRequest struct {
	Type          string           `json:"type"`
	Data          packageImage     `json:"data"`
	Metadata      *change.Metadata `json:"metadata"`
	Relationships struct {
		App ref `json:"app"`
	} `json:"relationships"`
}

// packageImage is the data of a package that is an image.
type packageImage struct {
	Image    string               `json:"image"`
	Username change.Field[string] `json:"username"`
	Password change.Field[string] `json:"password"`
}

func (i packageImage) Validate() []string {
	faults := control.Must(i.Image != "", "Image can't be blank",
		(i.Username.V == "") == (i.Password.V == ""), "Username and password can only be given together")
	if strings.Contains(i.Image, "://") {
		return append(faults, fmt.Sprintf("Docker URI [%s] should not contain scheme", i.Image))
	}
	if _, err := reference.Parse(desire.ImageScheme + i.Image); err != nil && i.Image != "" {
		faults = append(faults, fmt.Sprintf("Invalid image name [%s]: %s", i.Image, err))
	}
	return faults
}

func createPackage(c *call) (*response, error) {
	source := c.Request.URL.Query().Get("source_guid")
	var req packageRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if source == "" && req.Type != "bits" && req.Type != "docker" {
		c.Checked = true
		return nil, cf.Unprocessable("Type must be one of 'bits, docker'")
	}
	app, err := apps.PackageTarget(c.Session, req.Relationships.App.guid())
	if err != nil {
		return nil, err
	}
	p := &cf.Package{AppGUID: app.GUID, Type: req.Type, State: cf.PackageAwaiting}
	if source != "" {
		err = apps.CopyBits(c.Session, p, source)
	} else if p.Type == "docker" {
		p.State, p.Image, p.Credential = cf.PackageReady, req.Data.Image, cf.Credential{Username: req.Data.Username.V, Password: req.Data.Password.V}
		err = control.Invalid(req.Data.Validate())
	}
	if err == nil {
		err = apps.PackageSuits(p, app)
	}
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return nil, err
	}
	if err := store.Packages.Insert(c.Tx, p); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppPackageCreate, app, doc{"package_guid": p.GUID, "request": doc{"type": p.Type, "source_package_guid": control.OrNil(source)}}); err != nil {
		return nil, err
	}
	return created(viewPackage(c, p))
}

// showPackage holds no answer: an upload answers when its package is READY.
func showPackage(c *call) (*response, error) {
	p, _, err := ofApp(c, store.Packages, packageApp)
	if err != nil {
		return nil, err
	}
	return ok(viewPackage(c, p))
}

func listAppPackages(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	return listRows(c, store.Packages, viewPackage, func(q *listQuery) error {
		q.Where["app_guids"] = []string{app.GUID}
		return nil
	})
}

func updatePackage(c *call) (*response, error) {
	var req struct {
		Metadata *change.Metadata `json:"metadata"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	p, _, err := ofApp(c, store.Packages, packageApp)
	if err != nil {
		return nil, err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return nil, err
	}
	if err := store.Packages.Update(c.Tx, p); err != nil {
		return nil, err
	}
	return ok(viewPackage(c, p))
}

func deletePackage(c *call) (*response, error) {
	p, app, err := ofApp(c, store.Packages, packageApp)
	if err != nil {
		return nil, err
	}
	if err := store.Packages.Delete(c.Tx, p.GUID); err != nil {
		return nil, err
	}
	if err := c.AuditApp(audit.AppPackageDelete, app, doc{"package_guid": p.GUID}); err != nil {
		return nil, err
	}
	return c.accepted("package.delete", "packages", p.GUID)
}

func downloadPackage(c *call) (*response, error) {
	p, app, err := ofApp(c, store.Packages, packageApp)
	if err != nil {
		return nil, err
	}
	if p.Type != "bits" {
		return nil, cf.Unprocessable("Package type must be bits.")
	}
	if p.State != cf.PackageReady {
		return nil, cf.Unprocessable("Package has no bits to download.")
	}
	return c.download(p.Digest, "application/zip", "package_"+app.GUID+".zip")
}

// matchResources answers with those of the named files that need no upload.
func matchResources(c *call) (*response, error) {
	var req struct {
		Resources []resourceRequest `json:"resources"`
	}
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	c.Checked = true
	if err := c.Feature("app_bits_upload"); err != nil {
		return nil, err
	}
	if n := len(req.Resources); n == 0 || n > 5000 {
		return nil, cf.Unprocessable("Resources must have between 1 and 5000 items")
	}
	known := []resourceRequest{}
	matching, err := c.Flag("resource_matching")
	if err != nil {
		return nil, err
	}
	if !matching.Enabled {
		req.Resources = nil
	}
	for _, r := range req.Resources {
		digest, have, err := c.Tx.KnownFile(r.Checksum.Value, r.Size)
		if err != nil {
			return nil, err
		}
		if !have {
			continue
		}
		if err := c.Tx.RememberFile(r.Checksum.Value, r.Size, digest); err != nil { // it is still in use
			return nil, err
		}
		known = append(known, r)
	}
	return &response{status: http.StatusCreated, body: doc{"resources": known}}, nil
}

// resourceRequest is a file in a resource match or in an upload.
type resourceRequest struct {
	Path     string `json:"path"`
	Mode     string `json:"mode"`
	Checksum struct {
		Value string `json:"value"`
	} `json:"checksum"`
	Size int64 `json:"size_in_bytes"`
}

package api

import (
	"net/http"

	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

func packageApp(p *cf.Package) string { return p.AppGUID }

var (
	findPackage = anApps(store.Packages, packageApp)
)

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
	Type string `json:"type"`
	Data struct {
		Image    string               `json:"image"`
		Username change.Field[string] `json:"username"`
		Password change.Field[string] `json:"password"`
	} `json:"data"`
	Metadata      *change.Metadata `json:"metadata"`
	Relationships struct {
		App ref `json:"app"`
	} `json:"relationships"`
}

func createPackage(c *call) (*response, error) {
	var req packageRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	p, err := apps.CreatePackage(c.Session, apps.NewPackage{
		AppGUID: req.Relationships.App.GUID(), Source: c.Request.URL.Query().Get("source_guid"), Type: req.Type, Image: req.Data.Image,
		Credential: cf.Credential{Username: req.Data.Username.V, Password: req.Data.Password.V}, Metadata: req.Metadata})
	if err != nil {
		return nil, err
	}
	return created(viewPackage(c, p))
}

func deletePackage(c *call) (*response, error) {
	p, app, err := ofApp(c, store.Packages, packageApp)
	if err != nil {
		return nil, err
	}
	if err := apps.DeletePackage(c.Session, app, p); err != nil {
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
	if err := apps.PackageDownloaded(c.Session, app, p); err != nil {
		return nil, err
	}
	return download(c, p.Digest, "application/zip", "package_"+app.GUID+".zip")
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
	known, err := knownResources(c, req.Resources)
	return &response{status: http.StatusCreated, body: doc{"resources": known}}, err
}

// knownResources are the files that need no upload: none while matching is off.
func knownResources(c *call, all []resourceRequest) ([]resourceRequest, error) {
	known := []resourceRequest{}
	matching, err := c.Flag("resource_matching")
	if err != nil || !matching.Enabled {
		return known, err
	}
	for _, r := range all {
		have, err := apps.KnownFile(c.Session, r.Checksum.Value, r.Size)
		if err != nil {
			return nil, err
		}
		if have {
			known = append(known, r)
		}
	}
	return known, nil
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

package api

import (
	"io"
	"mime"
	"net/http"
	"slices"

	"cupola/server/control/manifests"
	"cupola/store/cf"
)

// readManifest reads the body of a request as a manifest. Of one that is too
// large it reads as much as Parse needs to refuse it.
func readManifest(c *call) (*manifests.Manifest, error) {
	kind, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if !slices.Contains([]string{"application/x-yaml", "application/yaml", "text/yaml", "text/x-yaml", "application/vnd.yaml"}, kind) {
		return nil, cf.Errorf(cf.BadRequest, "Bad request: Content-Type must be yaml")
	}
	text, err := io.ReadAll(io.LimitReader(c.Request.Body, maxBody))
	if err != nil {
		return nil, brokenBody(err)
	}
	return manifests.Parse(text)
}

// diffManifest reports what applying a manifest would change.
func diffManifest(c *call) (*response, error) {
	m, err := readManifest(c)
	if err != nil {
		return nil, err
	}
	space, err := findSpace(c)
	if err != nil {
		return nil, err
	}
	changes, err := m.Diff(c.Session, space)
	return &response{status: http.StatusCreated, body: doc{"diff": changes}}, err
}

// showManifest writes the manifest of an app.
func showManifest(c *call) (*response, error) {
	app, err := findApp(c)
	if err != nil {
		return nil, err
	}
	text, err := manifests.Write(c.Session, app)
	if err != nil {
		return nil, err
	}
	return &response{raw: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-yaml; charset=utf-8")
		w.Write(text)
	}}, nil
}

package api

import (
	"errors"
	"mime"
	"net/http"
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/server/control"
	"cupola/server/control/manifests"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

// readManifest reads the body of a request as a manifest.
func (c *call) readManifest() (*manifest.Manifest, error) {
	kind, _, _ := mime.ParseMediaType(c.Request.Header.Get("Content-Type"))
	if !slices.Contains([]string{"application/x-yaml", "application/yaml", "text/yaml", "text/x-yaml", "application/vnd.yaml"}, kind) {
		return nil, cf.Errorf(cf.BadRequest, "Bad request: Content-Type must be yaml")
	}
	text, err := readBody(c.Request, manifest.MaxBytes)
	if control.IsKind(err, cf.RequestTooLarge) {
		return nil, cf.Errorf(cf.BadRequest, "Bad request: Manifest size is too large. The maximum supported size is 1MB.")
	}
	if err != nil {
		return nil, err
	}
	m, err := manifest.Parse(text)
	var faults manifest.Invalid
	switch {
	case errors.As(err, &faults):
		return nil, manifests.Invalid(faults)
	case errors.Is(err, manifest.ErrAliases), errors.Is(err, manifest.ErrLarge):
		return nil, cf.Errorf(cf.BadRequest, "%s", err)
	case err != nil:
		return nil, cf.Errorf(cf.MessageParseError, "%s", err)
	}
	return m, nil
}

// diffManifest tells what applying a manifest would change.
func diffManifest(c *call) (*response, error) {
	m, err := c.readManifest()
	if err != nil {
		return nil, err
	}
	space, err := c.space()
	if err != nil {
		return nil, err
	}
	if err := manifests.CheckOptions(c.Session, m); err != nil {
		return nil, err
	}
	current := map[string]map[string]any{}
	for _, a := range m.Apps {
		app, err := store.Apps.First(c.Tx, store.Query{Where: map[string][]string{"names": {a.Name}, "space_guids": {space.GUID}}})
		if store.IsNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if current[a.Name], err = c.manifestOf(app, true); err != nil {
			return nil, err
		}
	}
	changes := manifest.Diff(m, func(name string) (map[string]any, bool) {
		v, ok := current[name]
		return v, ok
	})
	return &response{status: http.StatusCreated, body: doc{"diff": changes}}, nil
}

// showManifest writes the manifest of an app.
func showManifest(c *call) (*response, error) {
	app, err := c.app()
	if err != nil {
		return nil, err
	}
	m, err := c.manifestOf(app, false)
	if err != nil {
		return nil, err
	}
	text, err := yaml.Marshal(doc{"applications": []any{m}})
	if err != nil {
		return nil, err
	}
	return &response{raw: func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/x-yaml; charset=utf-8")
		w.Write(append([]byte("---\n"), text...))
	}}, nil
}

package api

import (
	"net/http"
	"slices"
	"strconv"

	"cupola/server/bosh/director"
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// viewBOSHConfig is a version of a config as the director shows it.
func viewBOSHConfig(_ *call, r *cf.BOSHConfig) doc {
	return doc{"id": strconv.Itoa(r.Number), "type": r.Type, "name": r.Name, "content": string(r.Content), "created_at": r.CreatedAt}
}

// listBOSHConfigs lists configs, newest versions first. The query's type and name
// select, latest=true leaves out older versions.
func listBOSHConfigs(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	q := c.Request.URL.Query()
	var rows []*cf.BOSHConfig
	var err error
	switch latest := q.Get("latest"); latest {
	case "true":
		rows, err = store.BOSHConfigs.Latest(c.Tx)
	case "false", "":
		rows, err = store.BOSHConfigs.Matching(c.Tx, store.Query{Order: "number", Desc: true})
	default:
		return nil, cf.Errorf(cf.BadQueryParameter, "'latest' must be 'true' or 'false'")
	}
	rows = slices.DeleteFunc(rows, func(r *cf.BOSHConfig) bool {
		return r.Deleted || q.Has("type") && q.Get("type") != r.Type || q.Has("name") && q.Get("name") != r.Name
	})
	if err != nil {
		return nil, err
	}
	return ok(views(c, rows, viewBOSHConfig))
}

// findBOSHConfig finds the version of {number}, for admins.
func findBOSHConfig(c *call) (*cf.BOSHConfig, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	number := c.param("number")
	r, err := store.BOSHConfigs.First(c.Tx, store.Query{Where: map[string][]string{"numbers": {number}}})
	if store.IsNotFound(err) || err == nil && r.Deleted {
		return nil, cf.Errorf(cf.ResourceNotFound, "Config with ID '%s' not found.", number)
	}
	return r, err
}

// configRequest is a config to be kept.
type configRequest struct {
	Type    string `json:"type"`
	Name    string `json:"name"`
	Content string `json:"content"`
}

func (r configRequest) Validate() []string {
	return control.Must(r.Type != "", "Type is required", r.Name != "", "Name is required")
}

// updateBOSHConfig keeps a version of a config. The answer has what lint finds.
func updateBOSHConfig(c *call) (*response, error) {
	var req configRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	r, found, err := director.UpdateConfig(c.Tx, req.Type, req.Name, req.Content)
	if err != nil {
		return nil, err
	}
	return &response{status: http.StatusCreated, body: with(viewBOSHConfig(c, r), doc{"findings": found})}, nil
}

func deleteBOSHConfig(c *call) (*response, error) {
	r, err := findBOSHConfig(c)
	if err != nil {
		return nil, err
	}
	if err := director.DeleteConfig(c.Tx, r); err != nil {
		return nil, err
	}
	return noContent()
}

// deleteBOSHConfigs deletes all versions of the config of the query's type and name.
func deleteBOSHConfigs(c *call) (*response, error) {
	q := c.Request.URL.Query()
	kind, name := q.Get("type"), q.Get("name")
	if kind == "" || name == "" {
		return nil, cf.Errorf(cf.BadQueryParameter, "'type' and 'name' are required")
	}
	deleted, err := director.DeleteConfigs(c.Tx, kind, name)
	if err == nil && !deleted {
		err = cf.Errorf(cf.ResourceNotFound, "No config of type '%s' is called '%s'", kind, name)
	}
	if err != nil {
		return nil, err
	}
	return noContent()
}

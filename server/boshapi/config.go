package boshapi

import (
	"fmt"
	"net/http"
	"strconv"

	"cupola/server/bosh/config"
	"cupola/server/bosh/director"
	"cupola/store"
	"cupola/store/cf"
)

// errNoConfig is the director's error for a config that does not exist; the CLI looks for
// its code.
func errNoConfig(format string, args ...any) error {
	return &refusal{http.StatusNotFound, 440012, fmt.Sprintf(format, args...)}
}

// viewConfig is a version of a config, with its content as the client may see it.
func (c *call) viewConfig(r *cf.BOSHConfig, current bool) (doc, error) {
	text, err := c.shown(string(r.Content))
	return doc{"id": strconv.Itoa(r.Number), "type": r.Type, "name": r.Name, "content": text, "created_at": r.CreatedAt.UTC().Format("2006-01-02 15:04:05 UTC"), "team": nil, "current": current}, err
}

// configs are the versions of configs, newest first, of a type and name unless these are
// empty; current reports which are the last ones.
func (c *call) configs(kind, name string) (rows []*cf.BOSHConfig, current func(*cf.BOSHConfig) bool, err error) {
	where := map[string][]string{}
	if kind != "" {
		where["types"] = []string{kind}
	}
	if name != "" {
		where["names"] = []string{name}
	}
	all, err := store.BOSHConfigs.Matching(c.tx, store.Query{Order: "number", Desc: true, Where: where})
	if err != nil {
		return nil, nil, err
	}
	last := map[[2]string]int{}
	for _, r := range all {
		if !r.Deleted {
			rows = append(rows, r)
			last[[2]string{r.Type, r.Name}] = max(last[[2]string{r.Type, r.Name}], r.Number)
		}
	}
	return rows, func(r *cf.BOSHConfig) bool { return last[[2]string{r.Type, r.Name}] == r.Number }, nil
}

// listConfigs lists the last versions of configs, or with latest=false as many of each as
// limit says.
func listConfigs(c *call) (*answer, error) {
	rows, current, err := c.configs(c.query("type"), c.query("name"))
	if err != nil {
		return nil, err
	}
	limit, err := strconv.Atoi(c.query("limit"))
	if c.flag("latest") || err != nil || limit < 1 {
		limit = 1
	}
	seen := map[[2]string]int{}
	all := []doc{}
	for _, r := range rows {
		of := [2]string{r.Type, r.Name}
		if seen[of]++; seen[of] > limit {
			continue
		}
		view, err := c.viewConfig(r, current(r))
		if err != nil {
			return nil, err
		}
		all = append(all, view)
	}
	return ok(all)
}

// config is that of an ID.
func (c *call) config(id string) (*cf.BOSHConfig, error) {
	r, err := store.BOSHConfigs.First(c.tx, store.Query{Where: map[string][]string{"numbers": {id}}})
	if store.IsNotFound(err) || err == nil && r.Deleted {
		return nil, errNoConfig("Config with ID '%s' not found.", id)
	}
	return r, err
}

func showConfig(c *call) (*answer, error) {
	r, err := c.config(c.param("id"))
	if err != nil {
		return nil, err
	}
	_, current, err := c.configs(r.Type, r.Name)
	if err != nil {
		return nil, err
	}
	view, err := c.viewConfig(r, current(r))
	return &answer{body: view}, err
}

// configRequest is a config to be kept, or compared.
type configRequest struct {
	Type     string `json:"type"`
	Name     string `json:"name"`
	Content  string `json:"content"`
	Expected string `json:"expected_latest_id"`
}

// latest is the last version of a config; nil if there is none.
func (c *call) latest(kind, name string) (*cf.BOSHConfig, error) {
	rows, _, err := c.configs(kind, name)
	if err != nil || len(rows) == 0 || name == "" {
		return nil, err
	}
	return rows[0], nil
}

func updateConfig(c *call) (*answer, error) {
	var req configRequest
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if req.Type == "" || req.Name == "" {
		return nil, &refusal{http.StatusBadRequest, 40001, "type and name are required"}
	}
	if req.Expected != "" {
		was, err := c.latest(req.Type, req.Name)
		if err != nil {
			return nil, err
		}
		id := "0"
		if was != nil {
			id = strconv.Itoa(was.Number)
		}
		if id != req.Expected {
			return &answer{status: http.StatusPreconditionFailed, body: doc{"latest_id": id, "expected_latest_id": req.Expected,
				"description": "Latest Id: '" + id + "' does not match expected latest id"}}, nil
		}
	}
	return c.keepConfig(req.Type, req.Name, req.Content)
}

func (c *call) keepConfig(kind, name, content string) (*answer, error) {
	r, _, err := director.UpdateConfig(c.tx, kind, name, content)
	if err != nil {
		return nil, err
	}
	view, err := c.viewConfig(r, true)
	return &answer{status: http.StatusCreated, body: view}, err
}

func deleteConfigs(c *call) (*answer, error) {
	kind, name := c.query("type"), c.query("name")
	if kind == "" || name == "" {
		return nil, &refusal{http.StatusBadRequest, 40001, "'type' and 'name' are required"}
	}
	deleted, err := director.DeleteConfigs(c.tx, kind, name)
	if err == nil && !deleted {
		err = errNoConfig("Config of type '%s' and name '%s' not found.", kind, name)
	}
	if err != nil {
		return nil, err
	}
	return noContent()
}

func deleteConfig(c *call) (*answer, error) {
	r, err := c.config(c.param("id"))
	if err == nil {
		err = director.DeleteConfig(c.tx, r)
	}
	if err != nil {
		return nil, err
	}
	return noContent()
}

// version is one side of a diff: a kept version or a text.
type version struct {
	ID      string `json:"id"`
	Content string `json:"content"`
}

// diffConfigs compares two versions, or a text with the last version of a config.
func diffConfigs(c *call) (*answer, error) {
	var req struct {
		configRequest
		From *version `json:"from"`
		To   *version `json:"to"`
	}
	if err := c.decode(&req); err != nil {
		return nil, err
	}
	if req.From == nil || req.To == nil {
		return c.diffLatest(req.Type, req.Name, req.Content)
	}
	var texts [2]string
	for n, of := range []*version{req.From, req.To} {
		if texts[n] = of.Content; of.ID == "" {
			continue
		}
		r, err := c.config(of.ID)
		if err != nil {
			return nil, err
		}
		texts[n] = string(r.Content)
	}
	lines, err := diffLines(texts[0], texts[1], false)
	return &answer{body: doc{"diff": lines}}, err
}

func (c *call) diffLatest(kind, name, text string) (*answer, error) {
	was, err := c.latest(kind, name)
	if err != nil {
		return nil, err
	}
	from, id := "", "0"
	if was != nil {
		from, id = string(was.Content), strconv.Itoa(was.Number)
	}
	lines, err := diffLines(from, text, false)
	if err != nil {
		return nil, &refusal{http.StatusBadRequest, 710000, "Incorrect YAML structure of the uploaded config: " + err.Error()}
	}
	return ok(doc{"diff": lines, "from": doc{"id": id}})
}

// Cloud-configs and runtime-configs have separate endpoints, from before there were
// configs.

// configName is the one of the query.
func (c *call) configName() string {
	if name := c.query("name"); name != "" {
		return name
	}
	return "default"
}

func oldConfigs(kind config.Type) handler {
	return func(c *call) (*answer, error) {
		r, err := c.latest(string(kind), c.configName())
		if err != nil || r == nil {
			return &answer{body: []doc{}}, err
		}
		text, err := c.shown(string(r.Content))
		return &answer{body: []doc{{"properties": text, "created_at": r.CreatedAt.UTC().Format("2006-01-02 15:04:05 UTC")}}}, err
	}
}

func updateOldConfig(kind config.Type) handler {
	return func(c *call) (*answer, error) {
		text, err := c.text()
		if err != nil {
			return nil, err
		}
		return c.keepConfig(string(kind), c.configName(), text)
	}
}

func diffOldConfig(kind config.Type) handler {
	return func(c *call) (*answer, error) {
		text, err := c.text()
		if err != nil {
			return nil, err
		}
		return c.diffLatest(string(kind), c.configName(), text)
	}
}

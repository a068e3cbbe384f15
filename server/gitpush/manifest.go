package gitpush

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/manifest"
)

// wanted is what a commit's manifest says of the app that is pushed.
type wanted struct {
	manifest []byte // to apply
	path     string // directory of the app's files
}

// errVariables is the error for a manifest whose variables have no values.
var errVariables = errors.New("the manifest has ((variables)), and git push gives no --var: commit a manifest without them, or use cf push")

// manifestOf makes the manifest to apply for an app, as cf push APP does: that of the
// commit, if it has one, for this app alone, and with a default route unless it says
// something of routes.
func manifestOf(text, app string) (*wanted, error) {
	var m struct {
		Applications []map[string]any `yaml:"applications"`
		Rest         map[string]any   `yaml:",inline"`
	}
	if err := manifest.Decode([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("manifest.yml: %w", err)
	}
	if strings.Contains(text, "((") {
		return nil, errVariables
	}
	one, err := choose(m.Applications, app)
	if err != nil {
		return nil, err
	}
	w := &wanted{path: "."}
	if path, ok := one["path"].(string); ok {
		w.path = path
	}
	if one["docker"] != nil {
		return nil, errors.New("the manifest names a docker image, and git push deploys source: use cf push")
	}
	delete(one, "path")
	one["name"] = app
	if one["no-route"] == nil && one["routes"] == nil && one["random-route"] == nil {
		one["default-route"] = true
	}
	delete(m.Rest, "applications")
	all := m.Rest
	if all == nil {
		all = map[string]any{}
	}
	all["applications"] = []any{one}
	w.manifest, err = yaml.Marshal(all)
	return w, err
}

// choose finds the app among those of a manifest. The only one need not have the name,
// as with cf push APP.
func choose(apps []map[string]any, app string) (map[string]any, error) {
	switch len(apps) {
	case 0:
		return map[string]any{}, nil
	case 1:
		if apps[0] == nil {
			return map[string]any{}, nil
		}
		return apps[0], nil
	}
	var names []string
	for _, a := range apps {
		if a["name"] == app {
			return a, nil
		}
		names = append(names, fmt.Sprint(a["name"]))
	}
	return nil, fmt.Errorf("the manifest has no app %s: push to the address of one of %s", app, strings.Join(names, ", "))
}

package manifest

import (
	"maps"

	"go.yaml.in/yaml/v3"
)

// How many routes and service instances a part has. A route costs some twenty
// statements and a binding more: a part is a transaction, and no other may write
// meanwhile.
const (
	partRoutes   = 10
	partServices = 5
)

// Weight is what applying a manifest costs, in about a statement of the database
// each.
func (m *Manifest) Weight() (n int) {
	for _, a := range m.Apps {
		n += 15 + 4*len(a.Processes) + 2*len(a.Sidecars) + 8*len(a.Jobs) + 20*len(a.Routes) + 25*len(a.Services)
	}
	return n
}

// Parts cuts an entry into manifests, each of which costs little to apply. They
// do the same, one after the other, as the entry whole. The first has all but
// long lists of routes and services.
func (app *App) Parts() ([]string, error) {
	first := maps.Clone(app.raw)
	var more []map[string]any
	for _, long := range []struct {
		key string
		max int
	}{{"routes", partRoutes}, {"services", partServices}} {
		list, _ := app.raw[long.key].([]any)
		if long.key == "routes" && app.NoRoute {
			list = nil // they are passed over
		}
		if len(list) <= long.max {
			continue
		}
		first[long.key] = list[:long.max]
		for at := long.max; at < len(list); at += long.max {
			more = append(more, map[string]any{"name": app.Name, continues: true, long.key: list[at:min(at+long.max, len(list))]})
		}
	}
	var parts []string
	for _, part := range append([]map[string]any{first}, more...) {
		text, err := yaml.Marshal(map[string]any{"applications": []any{part}})
		if err != nil {
			return nil, err
		}
		parts = append(parts, string(text))
	}
	return parts, nil
}

// continues is the key that all parts of an entry but the first have.
const continues = "cupola-continues"

// ParsePart reads a part of a manifest. It reports whether that is another part than
// the first: it has nothing but routes and services.
func ParsePart(text string) (app *App, more bool, err error) {
	m, err := Parse([]byte(text))
	if err != nil {
		return nil, false, err
	}
	app = &m.Apps[0]
	more, _ = app.raw[continues].(bool)
	return app, more, nil
}

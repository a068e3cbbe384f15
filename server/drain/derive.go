package drain

import (
	"context"
	"encoding/json"
	"log/slog"
	"slices"

	"cupola/store"
	"cupola/store/cf"
)

// Run keeps the drains as the rows want them until ctx ends, and closes them.
func (d *Drains) Run(ctx context.Context, s *store.Store, log *slog.Logger) error {
	defer d.Close()
	return store.Derive(ctx, s, store.Derivation[[]Drain]{Name: "drains", Read: readDrains, Log: log,
		Use: store.Always(func(_ context.Context, all []Drain) error { d.Set(all); return nil })})
}

// readDrains derives the drains that bindings of apps have. Those of an app whose space
// or org cannot be read are left out.
func readDrains(tx *store.Tx) (all []Drain, err error) {
	bound, err := store.ServiceBindings.By(tx, "type", cf.BindingApp)
	if err != nil {
		return nil, err
	}
	bound = slices.DeleteFunc(bound, func(b *cf.ServiceBinding) bool { return b.SyslogDrainURL == "" })
	hosts, err := drainHosts(tx, bound)
	for _, b := range bound {
		if hosts[b.AppGUID] == "" {
			continue
		}
		d := Drain{AppGUID: b.AppGUID, URL: b.SyslogDrainURL, Host: hosts[b.AppGUID]}
		d.Cert, d.Key, d.CA = certificates(b.Credentials)
		all = append(all, d)
	}
	return all, err
}

// drainHosts are the names under which apps log, by GUID.
func drainHosts(tx *store.Tx, bound []*cf.ServiceBinding) (map[string]string, error) {
	var guids []string
	for _, b := range bound {
		guids = append(guids, b.AppGUID)
	}
	apps, err := store.Apps.By(tx, "guids", guids...)
	if err != nil {
		return nil, err
	}
	guids = nil
	for _, a := range apps {
		guids = append(guids, a.SpaceGUID)
	}
	spaces, err := store.Spaces.By(tx, "guids", guids...)
	if err != nil {
		return nil, err
	}
	guids = nil
	for _, s := range spaces {
		guids = append(guids, s.OrgGUID)
	}
	orgs, err := store.Orgs.By(tx, "guids", guids...)
	if err != nil {
		return nil, err
	}
	spaceOf, orgOf, hosts := map[string]*cf.Space{}, map[string]string{}, map[string]string{}
	for _, s := range spaces {
		spaceOf[s.GUID] = s
	}
	for _, o := range orgs {
		orgOf[o.GUID] = o.Name
	}
	for _, a := range apps {
		s := spaceOf[a.SpaceGUID]
		if s == nil || orgOf[s.OrgGUID] == "" {
			continue
		}
		hosts[a.GUID] = hostname(orgOf[s.OrgGUID], s.Name, a.Name)
	}
	return hosts, nil
}

// certificates are what a service's credentials have for its drain, under the
// names that Cloud Controller looks for.
func certificates(credentials json.RawMessage) (cert, key, ca string) {
	var c map[string]any
	if json.Unmarshal(credentials, &c) != nil {
		return "", "", ""
	}
	text := func(name string) string { s, _ := c[name].(string); return s }
	return text("cert"), text("key"), text("ca")
}

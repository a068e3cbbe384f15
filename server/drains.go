package server

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"cupola/server/drain"
	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

// log keeps a line of an app, and sends it where the app's drains go.
func (h *daemon) log(e logcache.Envelope) {
	h.logs.Append(e)
	h.drains.Append(drain.Message{AppGUID: e.SourceID, Instance: e.InstanceID, Tags: e.Tags, At: e.Timestamp, Text: e.Payload, Err: e.Err})
}

// lookAgain is how long it takes until drains that could not be read are read
// again.
const lookAgain = time.Second

// drainLogs keeps the drains as the rows want them, until ctx ends.
func (h *daemon) drainLogs(ctx context.Context) error {
	changed, stop := h.store.Watch(store.ServiceBindings.Name(), store.Apps.Name(), store.Spaces.Name(), store.Orgs.Name())
	defer stop()
	defer h.drains.Close()
	for {
		var again <-chan time.Time
		if err := h.setDrains(ctx); err != nil && ctx.Err() == nil {
			h.Log.ErrorContext(ctx, "drains not updated", "err", err)
			again = time.After(lookAgain)
		}
		select {
		case <-changed:
		case <-again:
		case <-ctx.Done():
			return nil
		}
	}
}

func (h *daemon) setDrains(ctx context.Context) error {
	var all []drain.Drain
	err := h.store.Read(ctx, func(tx *store.Tx) (err error) {
		all, err = drainsOf(tx)
		return err
	})
	if err == nil {
		h.drains.Set(all)
	}
	return err
}

// drainsOf are the drains that bindings of apps have.
func drainsOf(tx *store.Tx) (all []drain.Drain, err error) {
	bound, err := store.ServiceBindings.By(tx, "type", cf.BindingApp)
	if err != nil {
		return nil, err
	}
	bound = slices.DeleteFunc(bound, func(b *cf.ServiceBinding) bool { return b.SyslogDrainURL == "" })
	hosts, err := drainHosts(tx, bound)
	for _, b := range bound {
		d := drain.Drain{AppGUID: b.AppGUID, URL: b.SyslogDrainURL, Host: hosts[b.AppGUID]}
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
		hosts[a.GUID] = drain.Hostname(orgOf[s.OrgGUID], s.Name, a.Name)
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

// reportDrain says in an app's log what became of a drain of its; what a drain
// could not take is not for the drain.
func (h *daemon) reportDrain(appGUID, text string) {
	h.logs.Append(logcache.Envelope{Timestamp: time.Now(), SourceID: appGUID, InstanceID: "0",
		Tags: map[string]string{"source_type": "LGR"}, Payload: []byte(text), Err: true})
}

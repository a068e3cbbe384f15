package server

import (
	"context"
	"encoding/json"
	"time"

	"cupola/server/drain"
	"cupola/server/logcache"
	"cupola/store"
	"cupola/store/cf"
)

// log keeps a line of an app, and sends it where the app's drains go.
func (h *house) log(e logcache.Envelope) {
	h.logs.Append(e)
	h.drains.Append(drain.Message{AppGUID: e.SourceID, Instance: e.InstanceID, Tags: e.Tags, At: e.Timestamp, Text: e.Payload, Err: e.Err})
}

// drainLogs keeps the drains as the rows want them, until ctx ends.
func (h *house) drainLogs(ctx context.Context) error {
	changed, stop := h.store.Watch(store.ServiceBindings.Name(), store.Apps.Name(), store.Spaces.Name(), store.Orgs.Name())
	defer stop()
	defer h.drains.Close()
	for {
		if err := h.setDrains(ctx); err != nil && ctx.Err() == nil {
			h.Log.ErrorContext(ctx, "drains not updated", "err", err)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil
		}
	}
}

func (h *house) setDrains(ctx context.Context) error {
	var all []drain.Drain
	err := h.store.Read(ctx, func(tx *store.Tx) error {
		bindings, err := store.ServiceBindings.All(tx)
		if err != nil {
			return err
		}
		for _, b := range bindings {
			if b.Type != cf.BindingApp || b.SyslogDrainURL == "" {
				continue
			}
			host, err := drainHost(tx, b.AppGUID)
			if err != nil {
				return err
			}
			d := drain.Drain{AppGUID: b.AppGUID, URL: b.SyslogDrainURL, Host: host}
			d.Cert, d.Key, d.CA = certificates(b.Credentials)
			all = append(all, d)
		}
		return nil
	})
	if err == nil {
		h.drains.Set(all)
	}
	return err
}

func drainHost(tx *store.Tx, appGUID string) (string, error) {
	app, err := store.Apps.Get(tx, appGUID)
	if err != nil {
		return "", err
	}
	space, err := store.Spaces.Get(tx, app.SpaceGUID)
	if err != nil {
		return "", err
	}
	org, err := store.Orgs.Get(tx, space.OrgGUID)
	if err != nil {
		return "", err
	}
	return drain.Hostname(org.Name, space.Name, app.Name), nil
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
func (h *house) reportDrain(appGUID, text string) {
	h.logs.Append(logcache.Envelope{Timestamp: time.Now(), SourceID: appGUID, InstanceID: "0",
		Tags: map[string]string{"source_type": "LGR"}, Payload: []byte(text), Err: true})
}

package manifests

import (
	"time"

	"cupola/server/control"
	"cupola/server/manifest"
	"cupola/store"
	"cupola/store/cf"
)

const (
	// atOnce is the weight of the largest manifest that is applied in one
	// transaction: about 20 ms of the database.
	atOnce = 200
	// partTime is how long one transaction makes apps: others' writes wait as long.
	partTime = 2 * time.Millisecond
)

// Small reports whether a manifest may be applied in one transaction.
func (m *Manifest) Small() bool { return m.parsed.Weight() <= atOnce }

// Apply applies a whole manifest to a space.
func (m *Manifest) Apply(c *control.Session, space *cf.Space) error {
	if err := check(c, m.parsed); err != nil {
		return err
	}
	var found []*cf.App
	for i := range m.parsed.Apps {
		app, err := findOrCreate(c, space, &m.parsed.Apps[i])
		if err != nil {
			return err
		}
		found = append(found, app)
	}
	for i, app := range found {
		if err := recordApply(c, app, &m.parsed.Apps[i]); err != nil {
			return err
		}
	}
	for i, app := range found {
		app, err := store.Apps.Get(c.Tx, app.GUID) // an earlier entry can have changed it
		if err != nil {
			return err
		}
		if err := Apply(c, app, &m.parsed.Apps[i]); err != nil {
			return err
		}
	}
	return nil
}

// CreateApps finds or creates the apps of a manifest, as many as there is time
// for: control.ErrMore if others are left for another transaction.
func (m *Manifest) CreateApps(c *control.Session, space *cf.Space) error {
	began := time.Now()
	late := func() bool { return time.Since(began) > partTime }
	if err := check(c, m.parsed); err != nil {
		return err
	}
	for len(m.apps) < len(m.parsed.Apps) {
		app, err := findOrCreate(c, space, &m.parsed.Apps[len(m.apps)])
		if err != nil {
			return err
		}
		if m.apps = append(m.apps, app); late() {
			return control.ErrMore
		}
	}
	for m.recorded < len(m.apps) {
		if err := recordApply(c, m.apps[m.recorded], &m.parsed.Apps[m.recorded]); err != nil {
			return err
		}
		if m.recorded++; late() && m.recorded < len(m.apps) {
			return control.ErrMore
		}
	}
	return nil
}

// Parts are what is left to do once the manifest's apps are created.
func (m *Manifest) Parts() (parts []cf.JobPart, err error) {
	for i, app := range m.apps {
		texts, err := m.parsed.Apps[i].Parts()
		if err != nil {
			return nil, err
		}
		for _, text := range texts {
			parts = append(parts, cf.JobPart{AppGUID: app.GUID, Input: text})
		}
	}
	return parts, nil
}

// ApplyPart applies the part of a manifest that a job kept for an app.
func ApplyPart(c *control.Session, part *cf.JobPart) error {
	m, more, err := manifest.ParsePart(part.Input)
	if err != nil {
		return err
	}
	app, err := store.Apps.Get(c.Tx, part.AppGUID)
	if store.IsNotFound(err) {
		return cf.Errorf(cf.ResourceNotFound, "App with guid '%s' not found", part.AppGUID)
	}
	if err != nil {
		return err
	}
	if _, err := c.InSpace(app.SpaceGUID); err != nil {
		return err
	}
	if more {
		return apply(c, app, m, applyRoutes, applyServices)
	}
	return Apply(c, app, m)
}

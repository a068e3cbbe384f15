package orgs

import (
	"fmt"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/store"
	"cupola/store/cf"
)

// PoolChange is a change of a placement pool. Only a new one names the spaces that
// get it.
type PoolChange struct {
	Name          change.Field[string]   `json:"name"`
	Require       change.Field[[]string] `json:"require"`
	Disallow      change.Field[[]string] `json:"disallow"`
	Default       change.Field[bool]     `json:"default"`
	Metadata      *change.Metadata       `json:"metadata"`
	Relationships struct {
		Spaces change.ToMany `json:"spaces"`
	} `json:"relationships"`
}

// Validate lists the tags that no cell can have. Whether one has is not asked: tags
// come and go with the cells.
func (r PoolChange) Validate() []string {
	return append(tagFaults("Require", r.Require.V), tagFaults("Disallow", r.Disallow.V)...)
}

func tagFaults(field string, tags []string) (faults []string) {
	for _, t := range tags {
		faults = append(faults, control.Must(strings.TrimSpace(t) != "", field+" must not hold an empty tag",
			len(t) <= lrp.MaxTagLength, fmt.Sprintf("%s tag '%s' must be shorter than %d characters", field, t, lrp.MaxTagLength+1))...)
	}
	return faults
}

// lowered are tags as they are compared, each once.
func lowered(tags []string) (out []string) {
	for _, t := range tags {
		if t = strings.ToLower(strings.TrimSpace(t)); !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// CreatePool adds a placement pool.
func CreatePool(c *control.Session, req PoolChange) (*cf.PlacementPool, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	p := &cf.PlacementPool{}
	if err := savePool(c, p, req, store.PlacementPools.Insert); err != nil {
		return nil, err
	}
	return p, AssignPool(c, p, req.Relationships.Spaces.GUIDs())
}

// UpdatePool changes a placement pool.
func UpdatePool(c *control.Session, p *cf.PlacementPool, req PoolChange) error {
	return savePool(c, p, req, store.PlacementPools.Update)
}

// savePool writes a pool; one that becomes the default takes the place of the
// other.
func savePool(c *control.Session, p *cf.PlacementPool, req PoolChange, write func(*store.Tx, *cf.PlacementPool) error) error {
	p.Name, p.Default = req.Name.Or(p.Name), req.Default.Or(p.Default)
	p.Require, p.Disallow = lowered(req.Require.Or(p.Require)), lowered(req.Disallow.Or(p.Disallow))
	if err := control.Invalid(control.Must(strings.TrimSpace(p.Name) != "", "Name can't be blank",
		len(p.Name) <= 250, "Name is too long (maximum is 250 characters)")); err != nil {
		return err
	}
	if err := req.Metadata.Apply(&p.Metadata); err != nil {
		return err
	}
	if p.Default {
		if err := replaceDefault(c, p); err != nil {
			return err
		}
	}
	err := write(c.Tx, p)
	if store.IsTaken(err) {
		return cf.Unprocessable("Placement pool with name '%s' already exists.", p.Name)
	}
	return err
}

func replaceDefault(c *control.Session, p *cf.PlacementPool) error {
	others, err := store.PlacementPools.By(c.Tx, "default", "true")
	if err != nil {
		return err
	}
	for _, o := range others {
		if o.GUID == p.GUID {
			continue
		}
		o.Default = false
		if err := store.PlacementPools.Update(c.Tx, o); err != nil {
			return err
		}
	}
	return nil
}

// DeletePool deletes a placement pool.
func DeletePool(c *control.Session, p *cf.PlacementPool) error {
	return store.PlacementPools.Delete(c.Tx, p.GUID)
}

// AssignPool gives spaces a placement pool, instead of the one that they had.
func AssignPool(c *control.Session, p *cf.PlacementPool, guids []string) error {
	spaces, unknown, err := visibleSpaces(c, guids)
	if err != nil || len(unknown) > 0 {
		return control.OrElse(err, cf.Unprocessable("Spaces with guids %s do not exist.", control.Inspect(unknown)))
	}
	for _, s := range spaces {
		if err := warnOfPool(c, s, p); err != nil {
			return err
		}
		s.PoolGUID = p.GUID
		if err := store.Spaces.Update(c.Tx, s); err != nil {
			return err
		}
	}
	return nil
}

// warnOfPool warns that a pool takes the place of another one of a space.
func warnOfPool(c *control.Session, s *cf.Space, p *cf.PlacementPool) error {
	if s.PoolGUID == "" || s.PoolGUID == p.GUID {
		return nil
	}
	was, err := store.PlacementPools.Get(c.Tx, s.PoolGUID)
	if err != nil {
		return err
	}
	c.Warn("Placement pool '%s' replaces '%s' of space '%s': a space has one pool.", p.Name, was.Name, s.Name)
	return nil
}

// AssignPoolToApps gives apps their own placement pool, instead of the one that they had.
func AssignPoolToApps(c *control.Session, p *cf.PlacementPool, guids []string) error {
	apps, err := store.Apps.Matching(c.Tx, store.Query{Where: map[string][]string{"guids": guids}, Visible: c.Scope})
	if err != nil {
		return err
	}
	if unknown := control.Missing(guids, control.GUIDs(apps, func(a *cf.App) string { return a.GUID })); len(unknown) > 0 {
		return cf.Unprocessable("Apps with guids %s do not exist.", control.Inspect(unknown))
	}
	for _, a := range apps {
		a.PoolGUID = p.GUID
		if err := store.Apps.Update(c.Tx, a); err != nil {
			return err
		}
	}
	return nil
}

// RemoveAppFromPool removes an app's own placement pool, so that its space's applies.
func RemoveAppFromPool(c *control.Session, p *cf.PlacementPool, app string) error {
	a, err := store.Apps.Visible(c.Tx, app, c.Scope)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	if a == nil || a.PoolGUID != p.GUID {
		return cf.Unprocessable("Unable to remove app with guid '%s'. Ensure the app has this placement pool.", app)
	}
	a.PoolGUID = ""
	return store.Apps.Update(c.Tx, a)
}

// RemoveFromPool leaves a space of a placement pool to the default one.
func RemoveFromPool(c *control.Session, p *cf.PlacementPool, space string) error {
	s, err := store.Spaces.Visible(c.Tx, space, c.Scope)
	if err != nil && !store.IsNotFound(err) {
		return err
	}
	if s == nil || s.PoolGUID != p.GUID {
		return cf.Unprocessable("Unable to remove space with guid '%s'. Ensure the space has this placement pool.", space)
	}
	s.PoolGUID = ""
	return store.Spaces.Update(c.Tx, s)
}

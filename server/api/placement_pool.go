package api

import (
	"fmt"
	"slices"
	"strings"

	"cupola/runtime/lrp"
	"cupola/server/control"
	"cupola/server/control/change"
	"cupola/server/control/orgs"
	"cupola/store"
	"cupola/store/cf"
)

func viewPool(c *call, p *cf.PlacementPool) doc {
	return with(resource(p.Resource), doc{
		"name": p.Name, "require": orNone(p.Require), "disallow": orNone(p.Disallow), "default": p.Default, "metadata": metadata(p.Metadata),
		"relationships": doc{"spaces": toMany(c.spacesIn(p))},
		"links":         doc{"self": c.link("/v3/placement_pools/%s", p.GUID)},
	})
}

// orNone is list, never null.
func orNone(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}

// spacesIn are the spaces with a pool that the actor sees.
func (c *call) spacesIn(p *cf.PlacementPool) []string {
	spaces, _, err := store.Spaces.List(c.Tx, store.Query{Where: map[string][]string{"placement_pool_guids": {p.GUID}}, Visible: c.Scope})
	if err != nil {
		return nil
	}
	return control.GUIDs(spaces, func(s *cf.Space) string { return s.GUID })
}

type poolRequest struct {
	Name          change.Field[string]   `json:"name"`
	Require       change.Field[[]string] `json:"require"`
	Disallow      change.Field[[]string] `json:"disallow"`
	Default       change.Field[bool]     `json:"default"`
	Metadata      *change.Metadata       `json:"metadata"`
	Relationships struct {
		Spaces refs `json:"spaces"`
	} `json:"relationships"`
}

func (r poolRequest) Validate() []string {
	return append(tagFaults("Require", r.Require.V), tagFaults("Disallow", r.Disallow.V)...)
}

// tagFaults says which of some tags no cell can have. Whether one has is not
// asked: tags come and go with the cells.
func tagFaults(field string, tags []string) (faults []string) {
	for _, t := range tags {
		faults = append(faults, control.Must(strings.TrimSpace(t) != "", field+" must not hold an empty tag",
			len(t) <= lrp.MaxTagLength, fmt.Sprintf("%s tag '%s' must be shorter than %d characters", field, t, lrp.MaxTagLength+1))...)
	}
	return faults
}

func (r poolRequest) apply(p *cf.PlacementPool) error {
	p.Name, p.Default = r.Name.Or(p.Name), r.Default.Or(p.Default)
	p.Require, p.Disallow = lowered(r.Require.Or(p.Require)), lowered(r.Disallow.Or(p.Disallow))
	if err := control.Invalid(control.NameFaults(p.Name)); err != nil {
		return err
	}
	return r.Metadata.Apply(&p.Metadata)
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

func createPool(c *call) (*response, error) {
	if err := c.PermitAdmin(); err != nil {
		return nil, err
	}
	var req poolRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	p := &cf.PlacementPool{}
	if err := req.apply(p); err != nil {
		return nil, err
	}
	if err := orgs.SavePool(c.Session, p, store.PlacementPools.Insert); err != nil {
		return nil, err
	}
	if err := orgs.AssignPool(c.Session, p.GUID, req.Relationships.Spaces.guids()); err != nil {
		return nil, err
	}
	return created(viewPool(c, p))
}

// pool is the placement pool of {guid} for one who may change it.
func (c *call) pool() (*cf.PlacementPool, error) {
	p, err := store.PlacementPools.Visible(c.Tx, c.guid(), c.Scope)
	if err != nil {
		return nil, err
	}
	return p, c.PermitAdmin()
}

func updatePool(c *call) (*response, error) {
	p, err := c.pool()
	if err != nil {
		return nil, err
	}
	var req poolRequest
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := req.apply(p); err != nil {
		return nil, err
	}
	if err := orgs.SavePool(c.Session, p, store.PlacementPools.Update); err != nil {
		return nil, err
	}
	return ok(viewPool(c, p))
}

func deletePool(c *call) (*response, error) {
	p, err := c.pool()
	if err != nil {
		return nil, err
	}
	if err := store.PlacementPools.Delete(c.Tx, p.GUID); err != nil {
		return nil, err
	}
	return c.accepted("placement_pool.delete", "placement_pools", p.GUID)
}

// addPoolSpaces gives spaces a pool, instead of the one that they had.
func addPoolSpaces(c *call) (*response, error) {
	p, err := c.pool()
	if err != nil {
		return nil, err
	}
	var req refs
	if err := decode(c, &req); err != nil {
		return nil, err
	}
	if err := orgs.AssignPool(c.Session, p.GUID, req.guids()); err != nil {
		return nil, err
	}
	return ok(with(toMany(c.spacesIn(p)), doc{"links": doc{"self": c.link("/v3/placement_pools/%s/relationships/spaces", p.GUID)}}))
}

// removePoolSpace leaves a space to the default pool.
func removePoolSpace(c *call) (*response, error) {
	p, err := c.pool()
	if err != nil {
		return nil, err
	}
	if !slices.Contains(c.spacesIn(p), c.param("space")) {
		return nil, cf.Unprocessable("Unable to remove space with guid '%s'. Ensure the space has this placement pool.", c.param("space"))
	}
	if err := orgs.AssignPool(c.Session, "", []string{c.param("space")}); err != nil {
		return nil, err
	}
	return noContent()
}

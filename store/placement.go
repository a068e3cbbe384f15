package store

import (
	"cmp"

	"cupola/store/cf"
)

// IsolationSegments are the isolation segments.
var IsolationSegments = &Table[cf.IsolationSegment]{table{
	name: "isolation_segments", singular: "Isolation segment", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, orgs",
	fields: fieldsOf(func(v *cf.IsolationSegment, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations}, &v.Name, jsonColumn{&v.Orgs}}
	}),
	resource: resourceOf(func(v *cf.IsolationSegment) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":              "isolation_segments.guid",
		"names":              "name",
		"organization_guids": "EXISTS (SELECT 1 FROM json_each(orgs) o WHERE o.value IN (SELECT value FROM json_each(?)))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "EXISTS (SELECT 1 FROM json_each(orgs) o WHERE o.value IN :orgs)",
}}

// PlacementPools are the placement pools.
var PlacementPools = &Table[cf.PlacementPool]{table{
	name: "placement_pools", singular: "Placement pool", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, name, require, disallow, is_default",
	fields: fieldsOf(func(v *cf.PlacementPool, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations}, &v.Name, jsonColumn{&v.Require}, jsonColumn{&v.Disallow}, &v.Default}
	}),
	resource: resourceOf(func(v *cf.PlacementPool) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":       "placement_pools.guid",
		"names":       "name",
		"default":     "is_default = (SELECT value = 'true' FROM json_each(?) LIMIT 1)",
		"space_guids": "guid IN (SELECT s.placement_pool FROM spaces s WHERE s.guid IN (SELECT value FROM json_each(?)))",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible: "is_default OR guid IN (SELECT s.placement_pool FROM spaces s WHERE s.guid IN :spaces) OR guid IN (SELECT a.placement_pool FROM apps a WHERE a.space_guid IN :spaces)",
}}

// PlacementOf is what would hold for something of an app that is started now:
// the pool of the app, or else that of its space, or else the default one, and
// the isolation segment of the space or else its org's.
func (tx *Tx) PlacementOf(app *cf.App) (p cf.Placement, err error) {
	space, err := Spaces.Get(tx, app.SpaceGUID)
	if err != nil {
		return p, err
	}
	org, err := Orgs.Get(tx, space.OrgGUID)
	if err != nil {
		return p, err
	}
	pools, err := PlacementPools.All(tx)
	if err != nil {
		return p, err
	}
	chosen := cmp.Or(app.PoolGUID, space.PoolGUID)
	for _, pool := range pools {
		if pool.GUID == chosen || pool.Default && p.Pool == "" {
			p.Pool, p.Require, p.Disallow = pool.Name, pool.Require, pool.Disallow
		}
		if pool.GUID == chosen {
			break
		}
	}
	own := org.SegmentGUID
	if space.SegmentGUID != "" {
		own = space.SegmentGUID
	}
	segments, err := IsolationSegments.All(tx)
	for _, s := range segments {
		switch s.GUID {
		case cf.SharedSegment:
		case own:
			p.Segment = s.Name
		default:
			p.Others = append(p.Others, s.Name)
		}
	}
	return p, err
}

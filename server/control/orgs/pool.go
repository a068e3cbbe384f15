package orgs

import (
	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// SavePool writes a pool; one that becomes the default takes the place of the
// other.
func SavePool(c *control.Session, p *cf.PlacementPool, write func(*store.Tx, *cf.PlacementPool) error) error {
	if p.Default {
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
	}
	err := write(c.Tx, p)
	if store.IsTaken(err) {
		return cf.Unprocessable("Placement pool with name '%s' already exists.", p.Name)
	}
	return err
}

// AssignPool gives spaces a placement pool; "" leaves them to the default.
func AssignPool(c *control.Session, pool string, spaces []string) error {
	unknown, err := unknownSpaces(c, spaces)
	if err != nil || len(unknown) > 0 {
		return control.OrElse(err, cf.Unprocessable("Spaces with guids %s do not exist.", control.Inspect(unknown)))
	}
	for _, guid := range spaces {
		s, err := store.Spaces.Get(c.Tx, guid)
		if err != nil {
			return err
		}
		s.PoolGUID = pool
		if err := store.Spaces.Update(c.Tx, s); err != nil {
			return err
		}
	}
	return nil
}

package boshapi

import (
	"cupola/runtime/guid"
	"cupola/store"
)

// info is what the CLI asks first, also to find whether its token is good.
func info(c *call) (*answer, error) {
	var user any
	if name := c.user(); name != "" {
		user = name
	}
	id, err := c.uuid()
	if err != nil {
		return nil, err
	}
	off := doc{"status": false}
	return ok(doc{"name": c.Name, "uuid": id, "version": c.Version + " (cupola)", "user": user, "cpi": "cupola", "stemcell_os": "-", "stemcell_version": "-",
		"user_authentication": doc{"type": "uaa", "options": doc{"url": "https://" + c.Request.Host + UAAPath, "urls": []string{"https://" + c.Request.Host + UAAPath}}},
		"features": doc{"dns": doc{"status": true, "extras": doc{"domain_name": "bosh"}}, "compiled_package_cache": off, "snapshots": off,
			"config_server": doc{"status": true, "extras": doc{}}, "local_dns": doc{"status": true, "extras": doc{}}}})
}

// uuidSetting is the name under which the director's UUID is kept.
const uuidSetting = "director_uuid"

// uuid is the director's, which is made once.
func (c *call) uuid() (id string, err error) {
	found := false
	ctx := store.As(c.Request.Context(), "bosh director")
	err = c.Store.Read(ctx, func(tx *store.Tx) error {
		found, err = store.Settings.Get(tx, uuidSetting, &id)
		return err
	})
	if err != nil || found {
		return id, err
	}
	err = c.Store.Write(ctx, func(tx *store.Tx) error {
		if found, err = store.Settings.Get(tx, uuidSetting, &id); err != nil || found {
			return err
		}
		id = guid.New()
		return store.Settings.Set(tx, uuidSetting, id)
	})
	return id, err
}

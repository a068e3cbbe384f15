package seed

import (
	"cupola/store"
	"cupola/store/cf"
)

// firstPlace makes the org and space that a first `cf push` goes to.
func firstPlace(tx *store.Tx) error {
	if n, err := store.Orgs.Count(tx, store.Query{}); err != nil || n > 0 {
		return err
	}
	org := &cf.Org{Name: "cupola"}
	if q, err := store.OrgQuotas.First(tx, store.Query{}); err == nil {
		org.QuotaGUID = q.GUID
	}
	if err := store.Orgs.Insert(tx, org); err != nil {
		return err
	}
	return store.Spaces.Insert(tx, &cf.Space{Name: "dev", OrgGUID: org.GUID, AllowSSH: true})
}

// sharedDomain makes the domain of apps, where there is none of its name.
func sharedDomain(tx *store.Tx, name string, internal bool) error {
	n, err := store.Domains.Count(tx, store.Query{Where: map[string][]string{"names": {name}}})
	if err != nil || n > 0 {
		return err
	}
	return store.Domains.Insert(tx, &cf.Domain{Name: name, Internal: internal})
}

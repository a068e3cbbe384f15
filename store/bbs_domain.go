package store

import (
	"time"

	"cupola/store/cf"
)

// BBSDomain is a domain whose owner said that what it desires is all there.
type BBSDomain struct {
	Name      string
	ExpiresAt time.Time // zero: never
}

// BBSDomains are the domains that are, or were, fresh.
var BBSDomains = bbsDomains{&Table[BBSDomain]{table{
	name: "bbs_domains", singular: "Domain",
	columns: "domain, expires_at",
	fields: fieldsOf(func(v *BBSDomain, _ *sealer) []any {
		return []any{&v.Name, timeColumn{&v.ExpiresAt}}
	}),
	resource: resourceOf(func(*BBSDomain) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "domain"},
}}}

type bbsDomains struct{ *Table[BBSDomain] }

// Fresh are the names of the domains that are fresh now.
func (t bbsDomains) Fresh(tx *Tx) (names []string, err error) {
	all, err := t.All(tx)
	for _, d := range all {
		if d.ExpiresAt.IsZero() || d.ExpiresAt.After(tx.Now) {
			names = append(names, d.Name)
		}
	}
	return names, err
}

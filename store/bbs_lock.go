package store

import (
	"time"

	"cupola/store/cf"
)

// BBSLock is a lock or a presence of Locket: an owner has a key until it
// releases it, or does not renew it in time.
type BBSLock struct {
	Key, Owner, Value string
	Type              int32 // Locket's type code: 1 lock, 2 presence
	ExpiresAt         time.Time
}

// BBSLocks are Locket's locks and presences, also those that have expired.
var BBSLocks = &Table[BBSLock]{table{
	name: "bbs_locks", singular: "Lock",
	columns: "key, owner, value, type, expires_at",
	fields: fieldsOf(func(v *BBSLock, _ *sealer) []any {
		return []any{&v.Key, &v.Owner, &v.Value, &v.Type, timeColumn{&v.ExpiresAt}}
	}),
	resource: resourceOf(func(*BBSLock) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "key"},
}}

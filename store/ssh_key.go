package store

import "cupola/store/cf"

// SSHKeys are the public keys by which users push over SSH. They end with their user.
var SSHKeys = &Table[cf.SSHKey]{table{
	name: "ssh_keys", singular: "SSH key",
	columns: "guid, created_at, updated_at, user_guid, name, public_key, fingerprint, last_used_at",
	fields: fieldsOf(func(v *cf.SSHKey, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			&v.UserGUID, &v.Name, &v.PublicKey, &v.Fingerprint, timeColumn{&v.LastUsedAt}}
	}),
	resource: resourceOf(func(v *cf.SSHKey) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "ssh_keys.guid", "user_guids": "user_guid", "names": "name", "fingerprints": "fingerprint"},
	orders:   map[string]string{"created_at": "created_at", "updated_at": "updated_at", "name": "name"},
	visible:  "user_guid IN :users",
}}

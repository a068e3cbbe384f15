package api

import (
	"cupola/store"
	"cupola/store/cf"
)

func viewSSHKey(c *call, k *cf.SSHKey) doc {
	var used any
	if !k.LastUsedAt.IsZero() {
		used = stamp(k.LastUsedAt)
	}
	return with(resource(k.Resource), doc{"name": k.Name, "public_key": k.PublicKey, "fingerprint": k.Fingerprint, "last_used_at": used,
		"relationships": doc{"user": toOne(k.UserGUID)},
		"links":         doc{"self": c.link("/v1/ssh_keys/%s", k.GUID), "user": c.link("/v3/users/%s", k.UserGUID)}})
}

var findSSHKey = ofPlatform(store.SSHKeys)

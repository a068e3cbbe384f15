package store

import "cupola/store/cf"

// Clients are the OAuth clients that were registered; those that every UAA of
// ours has are not among them.
var Clients = &Table[cf.Client]{table{
	name: "oauth_clients", singular: "Client",
	columns: "guid, created_at, updated_at, name, secret_hash, token_salt, grant_types, scopes, authorities, redirect_uris, auto_approve, access_seconds, refresh_seconds",
	fields: fieldsOf(func(v *cf.Client, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Name, &v.SecretHash, &v.TokenSalt,
			jsonColumn{&v.GrantTypes}, jsonColumn{&v.Scopes}, jsonColumn{&v.Authorities}, jsonColumn{&v.RedirectURIs}, jsonColumn{&v.AutoApprove},
			&v.AccessSeconds, &v.RefreshSeconds}
	}),
	resource: resourceOf(func(v *cf.Client) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid"},
	orders:   map[string]string{"client_id": "guid"},
}}

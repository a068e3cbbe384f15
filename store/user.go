package store

import "cupola/store/cf"

// Users are the users of the UAA.
var Users = &Table[cf.User]{table{
	name: "users", singular: "User", labelled: true,
	columns: "guid, created_at, updated_at, labels, annotations, username, origin, password_hash, given_name, family_name, email, scopes, token_salt",
	fields: fieldsOf(func(v *cf.User, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt},
			jsonColumn{&v.Labels}, jsonColumn{&v.Annotations},
			&v.Username, &v.Origin, &v.PasswordHash, &v.GivenName, &v.FamilyName, &v.Email, jsonColumn{&v.Scopes}, &v.TokenSalt}
	}),
	resource: resourceOf(func(v *cf.User) *cf.Resource { return &v.Resource }),
	filters: map[string]string{
		"guids":             "users.guid",
		"usernames":         "username",
		"origins":           "origin",
		"partial_usernames": "EXISTS (SELECT 1 FROM json_each(?) p WHERE username LIKE '%' || p.value || '%')",
	},
	orders:  map[string]string{"created_at": "created_at", "updated_at": "updated_at", "origin": "origin"},
	visible: "guid IN :users OR guid IN (SELECT user_guid FROM roles WHERE org_guid IN :orgs)",
}}

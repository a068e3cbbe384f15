package store

import "cupola/store/cf"

// Groups are the UAA's groups besides the scopes that it always knows.
var Groups = &Table[cf.Group]{table{
	name: "uaa_groups", singular: "Group",
	columns: "guid, created_at, updated_at, name, description, version",
	fields: fieldsOf(func(v *cf.Group, _ *sealer) []any {
		return []any{&v.GUID, timeColumn{&v.CreatedAt}, timeColumn{&v.UpdatedAt}, &v.Name, &v.Description, &v.Version}
	}),
	resource: resourceOf(func(v *cf.Group) *cf.Resource { return &v.Resource }),
	filters:  map[string]string{"guids": "guid", "names": "name"},
	orders:   map[string]string{"created_at": "created_at", "name": "name"},
}}

// NestedGroups are the UAA's groups that are members of groups.
var NestedGroups = nestedGroups{&Table[cf.NestedGroup]{table{
	name: "uaa_nested_groups", singular: "Group member",
	columns:  "group_name, member_name",
	fields:   fieldsOf(func(v *cf.NestedGroup, _ *sealer) []any { return []any{&v.Group, &v.Member} }),
	resource: resourceOf(func(*cf.NestedGroup) *cf.Resource { return nil }),
	filters:  map[string]string{"guids": "group_name", "groups": "group_name", "members": "member_name"},
}}}

type nestedGroups struct{ *Table[cf.NestedGroup] }

// Add makes a group a member of another. One that it is already stays the only one.
func (nestedGroups) Add(tx *Tx, n cf.NestedGroup) error {
	_, err := tx.exec("INSERT INTO uaa_nested_groups (group_name, member_name) VALUES (?, ?) ON CONFLICT DO NOTHING", n.Group, n.Member)
	return err
}

// Remove ends a membership, if there is one.
func (nestedGroups) Remove(tx *Tx, n cf.NestedGroup) error {
	_, err := tx.exec("DELETE FROM uaa_nested_groups WHERE group_name = ? AND member_name = ?", n.Group, n.Member)
	return err
}

// Rename gives the memberships of a group, and those in it, its new name.
func (nestedGroups) Rename(tx *Tx, from, to string) error {
	_, err := tx.exec("UPDATE uaa_nested_groups SET group_name = ? WHERE group_name = ?", to, from)
	if err == nil {
		_, err = tx.exec("UPDATE uaa_nested_groups SET member_name = ? WHERE member_name = ?", to, from)
	}
	return err
}

// Forget ends all memberships of a group, and those in it.
func (nestedGroups) Forget(tx *Tx, name string) error {
	_, err := tx.exec("DELETE FROM uaa_nested_groups WHERE group_name = ? OR member_name = ?", name, name)
	return err
}

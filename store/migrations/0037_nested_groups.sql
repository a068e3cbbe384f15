-- Groups of the UAA that are members of groups, by name: users.scopes has the users.
CREATE TABLE uaa_nested_groups (
  id INTEGER PRIMARY KEY, group_name TEXT NOT NULL, member_name TEXT NOT NULL,
  UNIQUE (group_name, member_name)
) STRICT;
CREATE INDEX uaa_nested_groups_member ON uaa_nested_groups (member_name);

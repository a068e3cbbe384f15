package cf

// Group is a group of the UAA that an admin made. Its members are the users with its
// name among their scopes, and the groups of NestedGroup.
type Group struct {
	Resource
	Name        string
	Description string
	Version     int // counts the updates
}

// NestedGroup is a group of the UAA that is a member of another one.
type NestedGroup struct {
	Group  string // a name
	Member string // a name
}

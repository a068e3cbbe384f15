package cf

// Group is a group of the UAA that an admin made. Its members are the users with its
// name among their scopes.
type Group struct {
	Resource
	Name        string
	Description string
	Version     int // counts the updates
}

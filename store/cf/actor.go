package cf

// Actor is who did something.
type Actor struct {
	GUID string `json:"guid"`
	Type string `json:"type"` // "user", "process", …
	Name string `json:"name"`
}

// Identity is the user or client that a token or a one-time code belongs to.
type Identity struct {
	UserGUID string // "" for a client
	Username string
	ClientID string
	Scopes   []string
}

// Actor is the user, or the client if there is none.
func (id Identity) Actor() Actor {
	if id.UserGUID == "" {
		return Actor{GUID: id.ClientID, Type: "client", Name: id.ClientID}
	}
	return Actor{GUID: id.UserGUID, Type: "user", Name: id.Username}
}

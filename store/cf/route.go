package cf

// Domain is a domain under which routes can be made.
type Domain struct {
	Resource
	Metadata
	Name       string
	Internal   bool
	OrgGUID    string   // "" for a shared domain
	SharedOrgs []string // further orgs of a private domain
}

// Route is a host and path of a domain.
type Route struct {
	Resource
	Metadata
	SpaceGUID    string
	SharedSpaces []string // further spaces to whose apps it may lead
	DomainGUID   string
	Host         string
	Path         string // "" or "/x"
	Destinations []Destination
	Options      map[string]any
}

// Destination is where a route leads: a process of an app.
type Destination struct {
	GUID        string `json:"guid"`
	AppGUID     string `json:"app_guid"`
	ProcessType string `json:"process_type"`
	Port        int    `json:"port"`     // 0: the process's default, 8080
	Protocol    string `json:"protocol"` // "http1" or "http2"
}

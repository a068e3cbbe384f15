package cf

// Domain is a domain under which routes can be made.
type Domain struct {
	Resource
	Metadata
	Name       string
	Internal   bool
	OrgGUID    string   // "" for a shared domain
	SharedOrgs []string // further orgs of a private domain
	// RouterGroupGUID is the group that gives the ports of the domain's routes,
	// which are TCP then; "" for routes by host and path.
	RouterGroupGUID string
	// EnforcesPolicies lets only those apps reach its routes that show their
	// certificates, that policies of the route name, and that are in PoliciesScope:
	// "any", "org" or "space" of the app they reach.
	EnforcesPolicies bool
	PoliciesScope    string
}

// RouterGroup gives the ports of routes.
type RouterGroup struct {
	Resource
	Name  string
	Type  string // "tcp" or "http"
	Ports string // like "1024-1033,2000"; "" of type http
}

// DefaultTCP is the router group that there always is: the ports for TCP routes that
// this machine has.
const (
	DefaultTCP     = "default-tcp"
	DefaultTCPGUID = "7d2c3a1e-5f0b-4e7a-9c31-0d6b1a5e2f48"
)

// TCP reports whether the domain's routes are TCP.
func (d *Domain) TCP() bool { return d.RouterGroupGUID != "" }

// Protocol of the domain's routes, as the API has it.
func (d *Domain) Protocol() string {
	if d.TCP() {
		return "tcp"
	}
	return "http"
}

// Route is a host and path of a domain, or a port.
type Route struct {
	Resource
	Metadata
	SpaceGUID    string
	SharedSpaces []string // further spaces to whose apps it may lead
	DomainGUID   string
	Host         string
	Path         string // "" or "/x"
	Port         int    // of a TCP route, which has neither host nor path; else 0
	Destinations []Destination
	Options      map[string]any
}

// Destination is where a route leads: a process of an app.
type Destination struct {
	GUID        string `json:"guid"`
	AppGUID     string `json:"app_guid"`
	ProcessType string `json:"process_type"`
	Port        int    `json:"port"`     // 0: the process's default, 8080
	Protocol    string `json:"protocol"` // "http1", "http2", or "tcp" of TCP routes
	// Weight is what Cloud Controller takes for a share in percent, 0 for none.
	// As with gorouter it is kept, and has no effect.
	Weight int `json:"weight,omitempty"`
}

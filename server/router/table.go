package router

// Table is all that a router routes.
type Table struct {
	Routes  []Route
	Guarded []string // domains whose routes have a Policy each
}

// Route leads a host and path, or a port, to endpoints. Routes of the same host
// and path are taken together.
type Route struct {
	Port    int    // where Ports listens for what comes in no HTTP; such a route has no host and path
	Host    string // "app.example.com" or "*.example.com"; case does not matter
	Path    string // "" or "/x": that and all below it, whatever the case
	AppGUID string // whose log gets requests that reach no endpoint; may be ""
	// AppGUIDs are all apps that the route leads to, with endpoints or without, where these
	// are several.
	AppGUIDs  []string
	Options   Options
	Endpoints []Endpoint // none: the route is unknown, at the latest after Config.EmptyPool
	// ServiceURL is where requests go before they come here: the route service
	// that is bound to the route; "" for none.
	ServiceURL string
	Policy     *Policy // nil lets in everybody
}

// apps are the apps that the route leads to.
func (r Route) apps() []string {
	if len(r.AppGUIDs) > 0 || r.AppGUID == "" {
		return r.AppGUIDs
	}
	return []string{r.AppGUID}
}

// Options are the options of a route in Cloud Foundry's API.
type Options struct {
	LoadBalancing string // RoundRobin, LeastConnection or Hash; "" is RoundRobin
	// HashHeader, with Hash, is the header by whose value requests go to an
	// instance. Those without it go round.
	HashHeader string
	// HashBalance, with Hash, is how many times the average an instance may have
	// under way before its requests go to the next one; 0 is without limit.
	HashBalance float64
}

// The ways to choose among endpoints.
const (
	RoundRobin      = "round-robin"
	LeastConnection = "least-connection"
	Hash            = "hash"
)

// HTTP2 is the Protocol of endpoints that speak HTTP/2 without TLS, as gRPC
// servers do.
const HTTP2 = "http2"

// Endpoint is an instance of a process that serves a route.
type Endpoint struct {
	Address      string // "ip:port"
	TLSAddress   string // the same by TLS, with the instance's certificate; "": there is none
	AppGUID      string
	ProcessGUID  string
	InstanceGUID string
	Index        int
	Segment      string // name of its isolation segment; "" for the shared one
	Protocol     string // HTTP2, else HTTP/1.1; of a route with a port it means nothing
}

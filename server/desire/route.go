package desire

import (
	"strconv"
	"strings"

	"cupola/store/cf"
)

// AppRoute is a route that leads to a process of an app.
type AppRoute struct {
	*cf.Route
	Domain     *cf.Domain
	ToPort     uint16   // of the container; 0: the first that the process listens on
	Protocol   string   // "http1" or "http2"; of no meaning for TCP and internal routes
	ServiceURL string   // of its route service; "" for none
	Sources    []string // whom its policies let in
}

// ProcessType of a destination is web, unless it says otherwise.
func ProcessType(d cf.Destination) string {
	if d.ProcessType == "" {
		return "web"
	}
	return d.ProcessType
}

// URI is the name of a route as VCAP_APPLICATION has it.
func URI(r *cf.Route, d *cf.Domain) string {
	if r.Port > 0 {
		return d.Name + ":" + strconv.Itoa(r.Port)
	}
	return strings.TrimPrefix(r.Host+"."+d.Name, ".") + r.Path
}

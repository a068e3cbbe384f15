package desire

import (
	"strconv"
	"strings"

	"cupola/store/cf"
)

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

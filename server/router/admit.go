package router

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"cupola/runtime/pattern"
)

// admit finds out whether the request can be forwarded at all. If not it is
// answered, in gorouter's words.
func (x *exchange) admit() bool {
	if x.host == "" {
		x.refuse(http.StatusBadRequest, "empty_host", "Request had empty Host header")
		return false
	}
	if x.request.Method == http.MethodConnect {
		x.refuse(http.StatusBadRequest, "unsupported_method", "CONNECT is not supported")
		return false
	}
	if !x.parseInstance() {
		return false
	}
	x.candidates = x.resolve()
	if len(x.candidates) == 0 && !x.sleeps() {
		x.refuseRoute()
		return false
	}
	if !x.permitted() {
		return false
	}
	if x.pool.service != nil && !x.throughService() {
		return false
	}
	dropH2C(x.request.Header)
	x.sticky = stickyInstance(x.request, x.router.config.StickyCookies)
	return true
}

// dropH2C forgets an offer to go on in HTTP/2: it is for this server, which
// declines. Passed on, it would open a tunnel to the app past the router.
func dropH2C(h http.Header) {
	for _, offer := range h["Upgrade"] {
		if strings.Contains(strings.ToLower(offer), "h2c") {
			h.Del("Upgrade")
			return
		}
	}
}

func (x *exchange) refuseRoute() {
	host := x.request.Host
	switch {
	case x.instance != nil:
		x.refuse(http.StatusBadRequest, "unknown_route", x.instance.missing(host))
	case x.pool == nil:
		x.refuse(http.StatusNotFound, "unknown_route", fmt.Sprintf("Requested route ('%s') does not exist.", host))
	default:
		x.refuse(http.StatusServiceUnavailable, "no_endpoints", fmt.Sprintf("Requested route ('%s') has no available endpoints.", host))
	}
}

// The headers that address one instance.
const (
	appInstanceHeader     = "X-Cf-App-Instance"
	processInstanceHeader = "X-Cf-Process-Instance"
)

var instancePattern = pattern.Lazy(`^([\da-f]{8}-(?:[\da-f]{4}-){3}[\da-f]{12})(?::(\d+))?$`)

// instance is what X-Cf-App-Instance or X-Cf-Process-Instance asks for.
type instance struct {
	process bool
	guid    string
	index   string // "": any
}

// parseInstance reads the headers; false after it refused a bad one.
func (x *exchange) parseInstance() bool {
	if value := x.request.Header.Get(appInstanceHeader); value != "" {
		m := instancePattern().FindStringSubmatch(value)
		if m == nil || m[2] == "" {
			x.refuse(http.StatusBadRequest, "invalid_cf_app_instance_header", "Invalid X-CF-App-Instance Header")
			return false
		}
		x.instance = &instance{guid: m[1], index: m[2]}
		return true
	}
	if value := x.request.Header.Get(processInstanceHeader); value != "" {
		m := instancePattern().FindStringSubmatch(value)
		if m == nil {
			x.refuse(http.StatusBadRequest, "invalid_cf_process_instance_header", "Invalid X-CF-Process-Instance Header")
			return false
		}
		x.instance = &instance{process: true, guid: m[1], index: m[2]}
	}
	return true
}

// guidLen is the length of a GUID. Diego's process GUIDs are an app's process
// and a version, each a GUID; the header has the first.
const guidLen = 36

func (i *instance) among(endpoints []*endpoint) (found []*endpoint) {
	for _, e := range endpoints {
		guid := e.AppGUID
		if i.process {
			guid = e.ProcessGUID[:min(guidLen, len(e.ProcessGUID))]
		}
		if guid == i.guid && (i.index == "" || i.index == strconv.Itoa(e.Index)) {
			found = append(found, e)
		}
	}
	return found
}

func (i *instance) missing(host string) string {
	switch {
	case i.process && i.index == "":
		return fmt.Sprintf("Requested instance with process guid ('%s') does not exist for route ('%s')", i.guid, host)
	case i.process:
		return fmt.Sprintf("Requested instance ('%s') with process guid ('%s') does not exist for route ('%s')", i.index, i.guid, host)
	}
	return fmt.Sprintf("Requested instance ('%s') with guid ('%s') does not exist for route ('%s')", i.index, i.guid, host)
}

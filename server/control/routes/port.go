package routes

import (
	"math/rand/v2"
	"slices"
	"strconv"

	"cupola/server/control"
	"cupola/store"
	"cupola/store/cf"
)

// routingDisabled is Cloud Controller's answer where there are no TCP routes.
func routingDisabled() error {
	return cf.Errorf(cf.ServiceUnavailable, "The Routing API is disabled.")
}

// AnyPort chooses a port of a domain that no route has, and nothing else on this
// machine.
func AnyPort(c *control.Session, d *cf.Domain) (int, error) {
	if len(c.Platform.TCPPorts) == 0 {
		return 0, routingDisabled()
	}
	ports, err := portsOf(c, d)
	if err != nil {
		return 0, err
	}
	routes, err := store.Routes.By(c.Tx, "with_port", "1")
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, r := range routes {
		taken[r.Port] = true
	}
	free := slices.DeleteFunc(ports.All(), func(port int) bool { return taken[port] })
	rand.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	for _, port := range free {
		if c.Platform.Usable(port) == nil {
			return port, nil
		}
	}
	return 0, cf.Unprocessable("There are no more ports available for this domain.")
}

// portTaken reports whether a route has a port, and which.
func portTaken(c *control.Session, port int) (*cf.Route, bool, error) {
	r, err := store.Routes.First(c.Tx, store.Query{Where: map[string][]string{"ports": {strconv.Itoa(port)}}})
	if store.IsNotFound(err) {
		return nil, false, nil
	}
	return r, err == nil, err
}

// checkPort says in Cloud Controller's words why a new route cannot have its
// port, or needs one; and of a TCP route that it can have nothing else.
func checkPort(c *control.Session, r *cf.Route, d *cf.Domain) error {
	switch {
	case !d.TCP() && r.Port > 0:
		return cf.Unprocessable("Routes with protocol 'http' do not support ports.")
	case !d.TCP():
		return nil
	case len(c.Platform.TCPPorts) == 0:
		return routingDisabled()
	case r.Host != "":
		return cf.Unprocessable("Hosts are not supported for TCP routes.")
	case r.Path != "":
		return cf.Unprocessable("Paths are not supported for TCP routes.")
	case r.Port == 0:
		return cf.Unprocessable("Routes with protocol 'tcp' must specify a port.")
	}
	return portFree(c, r, d)
}

func portFree(c *control.Session, r *cf.Route, d *cf.Domain) error {
	ports, err := portsOf(c, d)
	if err != nil {
		return err
	}
	other, taken, err := portTaken(c, r.Port)
	switch {
	case err != nil:
		return err
	case taken && other.DomainGUID == r.DomainGUID:
		return alreadyThere(c, r, d)
	case taken || !ports.Contain(r.Port) || c.Platform.Usable(r.Port) != nil:
		return cf.Unprocessable("Port '%d' is not available. Try a different port or use a different domain.", r.Port)
	}
	return nil
}

// warnOfPort tells who maps a route that nothing reaches it by its port yet.
func warnOfPort(c *control.Session, r *cf.Route) {
	if r.Port == 0 {
		return
	}
	if err := c.Platform.Usable(r.Port); err != nil {
		c.Warn("Port %d is in use by another program of this machine (%v): the route works as soon as it is free.", r.Port, err)
	}
}

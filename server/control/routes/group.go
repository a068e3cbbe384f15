package routes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"cupola/server/control"
	"cupola/server/control/access"
	"cupola/store"
	"cupola/store/cf"
)

// NewGroup is a router group as clients write it (routing-api: models.RouterGroup).
type NewGroup struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Ports string `json:"reservable_ports"`
}

// The types of router groups.
const (
	groupTCP  = "tcp"
	groupHTTP = "http"
)

// portWarning is the routing API's warning for a change of a group's ports.
const portWarning = "Warning: if routes are registered for ports that are not in the new range, modifying your load balancer to remove these ports will result in backends for those routes becoming inaccessible."

// Groups are the router groups: the machine's own, whose ports --tcp says, and those
// that were made.
func Groups(c *control.Session) (all []*cf.RouterGroup, err error) {
	if len(c.Platform.TCPPorts) == 0 {
		return nil, nil
	}
	made, err := store.RouterGroups.All(c.Tx)
	return append([]*cf.RouterGroup{defaultGroup(c)}, made...), err
}

func defaultGroup(c *control.Session) *cf.RouterGroup {
	return &cf.RouterGroup{Resource: cf.Resource{GUID: cf.DefaultTCPGUID}, Name: cf.DefaultTCP, Type: groupTCP, Ports: c.Platform.TCPPorts.String()}
}

// FindGroup is the router group with a GUID; nil for none.
func FindGroup(c *control.Session, guid string) (*cf.RouterGroup, error) {
	if guid == cf.DefaultTCPGUID {
		return defaultGroup(c), nil
	}
	g, err := store.RouterGroups.Get(c.Tx, guid)
	if store.IsNotFound(err) {
		return nil, nil
	}
	return g, err
}

// permitGroups refuses to let others than admins and those with the routing API's
// scope change router groups.
func permitGroups(c *control.Session) error {
	c.Checked = true
	if c.Actor.Admin || slices.Contains(c.Scopes, "routing.router_groups.write") {
		return nil
	}
	return access.NotAuthorized()
}

// CreateGroup makes a router group. If there is one of the name and type it is that:
// made is false.
func CreateGroup(c *control.Session, n NewGroup) (g *cf.RouterGroup, made bool, err error) {
	if err := permitGroups(c); err != nil {
		return nil, false, err
	}
	if len(c.Platform.TCPPorts) == 0 {
		return nil, false, routingDisabled()
	}
	all, err := Groups(c)
	if err != nil {
		return nil, false, err
	}
	for _, g := range all {
		if g.Name == n.Name && g.Type == n.Type {
			return g, false, nil
		}
	}
	if err := n.check(); err != nil {
		return nil, false, err
	}
	if slices.ContainsFunc(all, func(g *cf.RouterGroup) bool { return g.Name == n.Name }) {
		return nil, false, cf.Errorf(cf.BadRequest, "Cannot process request: a router group named %s exists", n.Name)
	}
	g = &cf.RouterGroup{Name: n.Name, Type: n.Type, Ports: n.Ports}
	return g, true, store.RouterGroups.Insert(c.Tx, g)
}

// UpdateGroup gives a router group other ports.
func UpdateGroup(c *control.Session, guid string, n NewGroup) (*cf.RouterGroup, error) {
	if err := permitGroups(c); err != nil {
		return nil, err
	}
	g, err := FindGroup(c, guid)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, cf.Errorf(cf.ResourceNotFound, "router group '%s' does not exist", guid)
	}
	c.Warn(portWarning)
	if n.Ports == g.Ports {
		return g, nil
	}
	if guid == cf.DefaultTCPGUID {
		return nil, cf.Errorf(cf.BadRequest, "Cannot process request: the ports of %s are those of cupola serve --tcp", cf.DefaultTCP)
	}
	changed := NewGroup{Name: g.Name, Type: g.Type, Ports: n.Ports}
	if err := changed.check(); err != nil {
		return nil, err
	}
	g.Ports = n.Ports
	return g, store.RouterGroups.Update(c.Tx, g)
}

// DeleteGroup deletes a router group. Domains keep its GUID, and their routes their
// ports, but they get no new routes.
func DeleteGroup(c *control.Session, guid string) error {
	if err := permitGroups(c); err != nil {
		return err
	}
	if guid == cf.DefaultTCPGUID {
		return cf.Errorf(cf.BadRequest, "Cannot process request: %s exists as long as cupola serve --tcp has ports", cf.DefaultTCP)
	}
	if _, err := store.RouterGroups.Get(c.Tx, guid); err != nil {
		return err
	}
	return store.RouterGroups.Delete(c.Tx, guid)
}

// check says in the routing API's words what is wrong with a router group
// (models.RouterGroup.Validate).
func (n NewGroup) check() error {
	fault := ""
	switch {
	case n.Name == "":
		fault = "missing name in router group"
	case n.Type == "":
		fault = "missing type in router group"
	case n.Type != groupTCP && n.Type != groupHTTP:
		fault = fmt.Sprintf("the type of router group %s is %q: give tcp or http", n.Name, n.Type)
	case n.Ports == "" && n.Type == groupTCP:
		fault = "missing reservable_ports in router group: " + n.Name
	case n.Ports == "":
	case n.Type == groupHTTP:
		fault = "reservable ports are not supported for router groups of type http"
	default:
		_, fault = reservable(n.Ports)
	}
	if fault != "" {
		return cf.Errorf(cf.BadRequest, "Cannot process request: %s", fault)
	}
	return nil
}

// reservable reads ports as the routing API does, with its messages
// (models.ReservablePorts).
func reservable(text string) (ranges cf.PortRanges, fault string) {
	for part := range strings.SplitSeq(text, ",") {
		r, fault := reservableRange(part)
		if fault != "" {
			return nil, fault
		}
		for _, other := range ranges {
			if other.First <= r.Last && r.First <= other.Last {
				return nil, fmt.Sprintf("Overlapping values: %s and %s", rangeText(other), rangeText(r))
			}
		}
		ranges = append(ranges, r)
	}
	return ranges, ""
}

const firstReservable = 1024

func reservableRange(text string) (r cf.PortRange, fault string) {
	const outside = "port must be between 1024 and 65535"
	first, last, between := strings.Cut(text, "-")
	if strings.Contains(last, "-") {
		return r, fmt.Sprintf("range (%s) has too many '-' separators", text)
	}
	a, errA := strconv.ParseUint(first, 10, 16)
	b, errB := a, errA
	if between {
		b, errB = strconv.ParseUint(last, 10, 16)
	}
	switch {
	case errA != nil && !between:
		return r, outside
	case errA != nil:
		return r, fmt.Sprintf("range (%s) requires a starting port", text)
	case errB != nil:
		return r, fmt.Sprintf("range (%s) requires an ending port", text)
	case a > b:
		return r, fmt.Sprintf("range (%s) must be in ascending numeric order", text)
	case a < firstReservable:
		return r, outside
	}
	return cf.PortRange{First: int(a), Last: int(b)}, ""
}

func rangeText(r cf.PortRange) string {
	if r.First == r.Last {
		return strconv.Itoa(r.First)
	}
	return fmt.Sprintf("[%d-%d]", r.First, r.Last)
}

// portsOf are the ports that a domain's routes can have.
func portsOf(c *control.Session, d *cf.Domain) (cf.PortRanges, error) {
	if d.RouterGroupGUID == cf.DefaultTCPGUID {
		return c.Platform.TCPPorts, nil
	}
	g, err := FindGroup(c, d.RouterGroupGUID)
	if err != nil {
		return nil, err
	}
	if g == nil {
		return nil, cf.Unprocessable("Route could not be created because the specified domain does not have a valid router group.")
	}
	ranges, _ := reservable(g.Ports) // check has read them
	return ranges, nil
}

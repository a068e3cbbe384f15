package control

import (
	"net/url"
	"strings"

	"cupola/runtime/lrp"
	"cupola/store"
	"cupola/store/cf"
)

// Platform is what the verbs need from the daemon.
type Platform struct {
	URL string // of the API, in the environment of apps

	// Note writes to an app's log what was done to the app.
	Note func(appGUID, text string)
	// Cells are the cells of this machine, with their use.
	Cells func() []lrp.CellUse
	// StackWarning says what to expect of a stack on this machine, "" for
	// nothing; nil warns of none.
	StackWarning func(stack string) string
	// Stacks are the root filesystems behind the stacks; nil: there are none.
	Stacks Stacks

	// QuotaAwakeOnly says that quotas do not count processes that sleep.
	QuotaAwakeOnly bool

	// BindingsPerInstance bounds how many bindings an app can have to one
	// service instance at a time; 0: 5.
	BindingsPerInstance func() int
	// MountsFor reports whether the volumes of a broker can be mounted here; nil:
	// those of none can.
	MountsFor func(brokerGUID string) bool

	// TCPPorts are the ports that routes can have; none: there are no TCP routes.
	TCPPorts cf.PortRanges
	// PortUsable is nil where this machine can listen at a port for routes, or
	// does; nil knows of none in use.
	PortUsable func(port int) error
}

// Stacks are the root filesystems behind the stacks, by name.
type Stacks interface {
	// Users lists who needs one besides apps.
	Users(tx *store.Tx, name string) ([]string, error)
	// Remove removes a stack that is not in use, if it exists. It is called in a
	// transaction.
	Remove(name string) error
	// Offer is called when some are gone: it brings rows and cells up to what is
	// there.
	Offer()
}

// defaultBindings is how many bindings an app can have to one service instance
// at a time, unless the operator says otherwise: enough to rotate them.
const defaultBindings = 5

// MaxBindings bounds the bindings of an app to one service instance.
func (p *Platform) MaxBindings() int {
	if p.BindingsPerInstance == nil {
		return defaultBindings
	}
	return p.BindingsPerInstance()
}

// Mounts reports whether a broker's volumes can be mounted.
func (p *Platform) Mounts(brokerGUID string) bool {
	return p.MountsFor != nil && p.MountsFor(brokerGUID)
}

// Usable is nil when this machine can listen, or does, for routes at a port.
func (p *Platform) Usable(port int) error {
	if p.PortUsable == nil {
		return nil
	}
	return p.PortUsable(port)
}

// SystemDomain is the domain that the API's host is in.
func (p *Platform) SystemDomain() string {
	u, err := url.Parse(p.URL)
	if err != nil {
		return ""
	}
	_, domain, _ := strings.Cut(u.Hostname(), ".")
	return domain
}

package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"
)

const lookupTime = 1500 * time.Millisecond

// names checks that clients on this machine find the API and apps by name.
// curl and browsers know *.localhost; Go programs, the cf CLI among them, and
// most others ask the system.
func (m *machine) names(ctx context.Context) Result {
	ctx, cancel := context.WithTimeout(ctx, lookupTime)
	defer cancel()
	api := m.finds(ctx, "api."+m.Domain)
	app := m.finds(ctx, "cupola-doctor."+m.Domain)
	hosts := fmt.Sprintf("echo '127.0.0.1 api.%s' | sudo tee -a /etc/hosts", m.Domain)
	local := m.Domain == "localhost"
	switch {
	case api && app:
		return fine("*." + m.Domain + " resolves")
	case local && api:
		return fine("api.localhost resolves; apps do in curl and browsers, in other programs with a line of theirs in /etc/hosts")
	case local:
		return warning("*.localhost resolves in curl and browsers, and not in the cf CLI: log in with 'cf login -a http://localhost:"+m.port()+"', or", hosts)
	case api:
		return warning("api."+m.Domain+" resolves, apps do not", fmt.Sprintf("add *.%s to your DNS; or for each app: echo '127.0.0.1 APP.%s' | sudo tee -a /etc/hosts", m.Domain, m.Domain))
	}
	return warning("*."+m.Domain+" does not resolve: apps are found with 'curl -H Host:', the API by its IP address; or", hosts)
}

func (m *machine) finds(ctx context.Context, host string) bool {
	found, err := m.lookup(ctx, host)
	return err == nil && slices.ContainsFunc(found, func(s string) bool {
		_, err := netip.ParseAddr(s)
		return err == nil
	})
}

func (m *machine) port() string {
	return m.HTTP[strings.LastIndex(m.HTTP, ":")+1:]
}

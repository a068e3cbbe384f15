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
	hosts := fmt.Sprintf("echo '127.0.0.1 api.%[1]s APP.%[1]s' | sudo tee -a /etc/hosts   # for each APP", m.Domain)
	switch {
	case api && app:
		return fine("*." + m.Domain + " resolves")
	case m.Domain == "localhost":
		return warning("curl and browsers resolve APP.localhost, other programs do not; the API is at http://localhost:"+m.port(), hosts)
	case api:
		return warning("api."+m.Domain+" resolves, names of apps do not", hosts)
	}
	return warning("*."+m.Domain+" does not resolve: reach apps with 'curl -H Host:' and the API by its IP address; or", hosts)
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

package director

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/bosh"
	"cupola/server/bosh/link"
	"cupola/server/bosh/tree"
	"cupola/store"
	"cupola/store/cf"
)

// TestNumbersStayNumbers in orders, in the values of an earlier deploy and in shared
// links.
func TestNumbersStayNumbers(t *testing.T) {
	l, _, _ := newLoop(t)
	move(t, l)
	var seen tree.Map
	l.Resolve = func(_ context.Context, r Request) (*bosh.Deployment, error) {
		seen = r.Manifest.InstanceGroups[0].Jobs[0].Properties
		return &bosh.Deployment{Name: r.Manifest.Name, Provides: []link.Provider{{Name: "app", Shared: true, Link: link.Link{Properties: seen}}}}, nil
	}
	const m = "name: app\nreleases: [{name: r, version: 1, url: h.example/o, stemcell: {os: o, version: 1}}]\n" +
		"instance_groups: [{name: g, instances: 1, jobs: [{name: j, release: r, properties: {v: ((v))}}]}]"
	given := []any{8080, 6000000000, uint64(1 << 63), 1.5, 8080.0, "8080", "yes", true}
	sent := map[string]any{"v": tree.Sent(given)}
	for task, values := range []Values{{"v": given}, nil} {
		write(t, l, func(tx *store.Tx) error {
			_, err := Ask(tx, "app", "admin", Deploy, Order{Manifest: m, Values: values, Lenient: true})
			return err
		})
		move(t, l)
		if got, _ := row(t, l, fmt.Sprint(task+2)); got.State != cf.BOSHDone {
			t.Fatalf("got %s %q", got.State, got.Result)
		}
		if diff := cmp.Diff(sent, map[string]any(seen)); diff != "" {
			t.Errorf("deploy %d (-want +got):\n%s", task, diff)
		}
	}
	providers, _ := l.shared(t.Context())("app")
	if len(providers) != 1 || !cmp.Equal(sent, map[string]any(providers[0].Link.Properties)) {
		t.Errorf("got %+v; want %v", providers, sent)
	}
}

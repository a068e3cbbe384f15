package podcell

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"cupola/runtime/lrp"
	"cupola/server/kube"
)

func exampleReach() lrp.Reach {
	return lrp.Reach{
		Egress: map[string][]lrp.EgressRule{
			"running/space": {{Protocol: "tcp", Destinations: []string{"10.0.0.0/8"}, Ports: "443"}},
			"running/bare":  nil,
		},
		Policies: []lrp.NetworkPolicy{{Source: "front", Destination: "back", Protocol: "tcp", FirstPort: 8080, LastPort: 8080}},
	}
}

// member is an instance of an app in a space.
func member(guid, space, app string) lrp.Container {
	c := container(guid)
	c.EgressGroup, c.PolicyGroup = "running/"+space, app
	return c
}

// What a pod may connect to is there before it is, and goes with the last that needs it.
func TestPolicies(t *testing.T) {
	inBubble(t, func(t *testing.T, c *cluster, w *world) {
		w.Start(member(guid, "space", "back"))
		synctest.Wait()
		if got := c.policies(); got != "isolation of the cell, network policies of back, security groups of running.space" || c.made[len(c.made)-1] != "Pod" || !slices.Equal(c.made[:3], []string{"NetworkPolicy", "NetworkPolicy", "NetworkPolicy"}) {
			t.Errorf("got the policies %q, made in the order %v", got, c.made)
		}
		w.Start(member("i-2", "bare", "other"))
		w.Start(member("i-3", "space", "front"))
		wait(time.Second)
		const all = "isolation of the cell, network policies of back, network policies of front, security groups of running.space"
		if got := c.policies(); got != all {
			t.Errorf("got the policies %q; want %q", got, all)
		}
		was := c.called("create")
		w.SetReach(exampleReach())
		wait(time.Second)
		if got := c.called("create"); got != was {
			t.Errorf("%d objects were made though nothing changed", got-was)
		}

		reach := exampleReach()
		reach.Policies, reach.Egress["running/bare"] = nil, []lrp.EgressRule{{Protocol: "all", Destinations: []string{"192.0.2.0/24"}}}
		w.SetReach(reach)
		wait(time.Second)
		if got := c.policies(); got != "isolation of the cell, security groups of running.bare, security groups of running.space" {
			t.Errorf("got the policies %q after a change", got)
		}
		for _, guid := range []string{guid, "i-2", "i-3"} {
			w.Stop(guid)
		}
		wait(time.Minute)
		if got := c.policies(); got != "" || len(c.left()) > 0 {
			t.Errorf("got the policies %q without a pod; left: %v", got, c.left())
		}
	})
}

// The next daemon removes what nothing needs any longer, and keeps the rest; whatever others have changed or removed is made again.
func TestPoliciesAfterKill(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		w := run(t, c, dir)
		synctest.Wait()
		own := member("i-2", "", "")
		own.EgressGroup, own.Egress = "", []lrp.EgressRule{{Protocol: "udp", Destinations: []string{"192.0.2.9"}, Ports: "53"}}
		w.Start(member(guid, "space", "back"))
		w.Start(own)
		synctest.Wait()
		was := c.policies()
		w.kill()
		c.mu.Lock()
		left := kube.Reach{Pods: w.pods}.Isolation(nil)
		c.objects["NetworkPolicy"][left.Name()] = left
		c.mu.Unlock()
		run(t, c, dir)
		wait(10 * time.Second)
		if got := c.policies(); got != was || strings.Count(got, ",") != 3 {
			t.Errorf("the next daemon has the policies %q; want %q", got, was)
		}
		c.mu.Lock()
		n := 0
		for name, o := range c.objects["NetworkPolicy"] {
			if n++; n == 1 {
				c.take("NetworkPolicy", name)
				continue
			}
			o.Map("metadata")["generation"] = int64(2)
			c.changed(o)
		}
		c.mu.Unlock()
		wait(10 * time.Second)
		c.mu.Lock()
		for _, o := range c.objects["NetworkPolicy"] {
			if !kube.Intact(o) {
				t.Errorf("%v stays as others changed it", o.Map("metadata"))
			}
		}
		c.mu.Unlock()
		if got := c.policies(); got != was {
			t.Errorf("got the policies %q after others changed them; want %q", got, was)
		}
	})
}

// Without the right to see NetworkPolicies none are made; an instance whose policy is refused does not run without it.
func TestPoliciesRefused(t *testing.T) {
	dir := t.TempDir()
	forbidden := apierrors.NewForbidden(podResource, "", errors.New("not yours"))
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.hidden = forbidden
		w := run(t, c, dir)
		synctest.Wait()
		w.Start(member(guid, "space", "back"))
		wait(time.Second)
		if got := strings.Join(c.left(), " "); c.policies() != "" || got != "i-1 i-1-env i-1-files" {
			t.Errorf("got the policies %q and %s", c.policies(), got)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		c := newCluster()
		c.refused, c.refuses = "NetworkPolicy", forbidden
		w := run(t, c, dir)
		synctest.Wait()
		w.Start(member(guid, "space", "back"))
		wait(time.Second)
		if got := w.take(); !strings.Contains(got, "failed to create container: ") || !strings.Contains(got, "not yours") || len(c.left()) > 0 {
			t.Errorf("got %s; left: %v", got, c.left())
		}
	})
}

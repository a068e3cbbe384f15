package apply

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/server/kube"
	"cupola/server/kube/kubetest"
)

// plane is a control plane that a test brings things into.
type plane struct {
	*kubetest.Plane
	t *testing.T
}

// open is the cluster. What it warns of fails the test.
func (p *plane) open() *Cluster {
	p.t.Helper()
	c, err := Open(Config{Kubeconfig: p.Kubeconfig, Context: "test", Warn: func(text string) { p.t.Errorf("the cluster warns: %s", text) }})
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// golden are the objects of one of the renderer's own tests.
func golden(t *testing.T, name string) []kube.Object {
	t.Helper()
	text, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := kube.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// bring applies and waits, and counts what became of the objects.
func (p *plane) bring(c *Cluster, all []kube.Object) map[Change]int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), kubetest.Patience)
	defer cancel()
	changes := map[Change]int{}
	if err := c.Apply(ctx, all, func(_ kube.Object, change Change) { changes[change]++ }); err != nil {
		p.t.Fatal(err)
	}
	if err := c.Wait(ctx, all, func(o kube.Object, text string) { p.t.Logf("%s: %s", named(o), text) }); err != nil {
		p.t.Fatal(err)
	}
	return changes
}

// pods are the pods of the services, each with its node's zone and its image.
func (p *plane) pods() (all []string) {
	for _, o := range p.List("v1", "Pod") {
		if o.Label("apps.kubernetes.io/pod-index") != "" {
			all = append(all, fmt.Sprintf("%s %s %s", o.Name(), strings.TrimPrefix(o.Text("spec", "nodeName"), "node-"), o.Items("spec", "containers")[0].Text("image")))
		}
	}
	return all
}

// TestLive brings the renderer's example into a real cluster: all gets ready,
// another time nothing changes, an update stops at its canaries and goes on, an
// errand runs, what is used no longer is removed, and volumes outlive their pods.
func TestLive(t *testing.T) {
	p := &plane{kubetest.Start(t), t}
	c := p.open()
	all := golden(t, "nats-secrets.golden.yml") // the canary phase, with values
	if got := p.bring(c, all); got[created] != len(all) {
		t.Errorf("got %v; want %d created", got, len(all))
	}
	if got := p.bring(c, all); got[unchanged] != len(all) {
		t.Errorf("the second time: got %v; want %d unchanged", got, len(all))
	}
	known, err := c.Known(t.Context(), "nats-deployment")
	if diff := cmp.Diff(kube.KnownOf(all), known); diff != "" || err != nil {
		t.Errorf("versions in the cluster: %v\n%s", err, diff)
	}
	p.checkUpdate(c, all)
	p.checkErrand(c, all)
	p.checkPrune(c, all)
	p.checkDelete()
	p.bring(c, golden(t, "app.golden.yml"))
}

func (p *plane) checkUpdate(c *Cluster, all []kube.Object) {
	p.t.Helper()
	const was, is = "registry.example.com/org/nats:SLE-27.8-26", "registry.example.com/org/nats:SLE-27.8-27"
	web := func(image string) []string {
		const web = "registry.example.com/org/tests:opensuse-42.3-1"
		return []string{"nats-deployment-web-z0-v1-0 z1 " + web, "nats-deployment-web-z0-v1-1 z1 " + web,
			"nats-deployment-web-z1-v1-0 eu-2 " + web}
	}
	look := func(when string, images ...string) {
		p.t.Helper()
		var got []string
		for _, pod := range p.pods() {
			if strings.HasPrefix(pod, "nats-deployment-nats-v1-") { // without a zone
				f := strings.Fields(pod)
				pod = f[0] + " " + f[2]
			}
			got = append(got, pod)
		}
		want := slices.Concat([]string{"nats-deployment-nats-v1-0 " + images[0], "nats-deployment-nats-v1-1 " + images[1]}, web(""))
		if diff := cmp.Diff(want, got); diff != "" {
			p.t.Errorf("%s:\n%s", when, diff)
		}
	}
	look("at first", was, was)
	changed := p.edited(all, was, is)
	p.settled(c, changed, false)
	p.bring(c, changed)
	look("with canaries", was, is)
	p.bring(c, kube.Finished(changed))
	look("after all", is, is)
	p.settled(c, changed, true)
}

// edited are objects with other texts in them: old, new, …
func (p *plane) edited(all []kube.Object, texts ...string) []kube.Object {
	p.t.Helper()
	var text bytes.Buffer
	if err := kube.Write(&text, all); err != nil {
		p.t.Fatal(err)
	}
	changed, err := kube.Read(strings.NewReader(strings.NewReplacer(texts...).Replace(text.String())))
	if err != nil {
		p.t.Fatal(err)
	}
	return changed
}

// settled checks whether there is anything to update.
func (p *plane) settled(c *Cluster, all []kube.Object, want bool) {
	p.t.Helper()
	for _, o := range kube.Finished(all) {
		if got, err := c.UpToDate(p.t.Context(), o); err != nil || got != want {
			p.t.Errorf("%s is settled: %v, %v; want %v", named(o), got, err, want)
		}
	}
}

func (p *plane) checkErrand(c *Cluster, all []kube.Object) {
	p.t.Helper()
	at := slices.IndexFunc(all, func(o kube.Object) bool { return o.Kind() == "CronJob" })
	run := p.Trigger(all[at], "smoke-1")
	ctx, cancel := context.WithTimeout(p.t.Context(), kubetest.Patience)
	defer cancel()
	if err := c.Wait(ctx, []kube.Object{run}, func(o kube.Object, text string) { p.t.Logf("%s: %s", named(o), text) }); err != nil {
		p.t.Error(err)
	}
}

// checkPrune takes a group and a variable from the deployment, and changes what
// pods mount and what a job runs.
func (p *plane) checkPrune(c *Cluster, all []kube.Object) {
	p.t.Helper()
	const name, mounted = "nats-deployment", "Secret nats-deployment.jobs.nats-v5"
	p.bring(c, p.edited(all, "variable-name: nats_password", "variable-name: nats_password\n    quarks.cloudfoundry.org/variable-digest: made"))
	p.copied(c, "nats-deployment.jobs.nats-v5", "copy")
	rest := slices.DeleteFunc(slices.Clone(all), func(o kube.Object) bool {
		return strings.Contains(o.Name(), "web") || strings.Contains(o.Name(), "password")
	})
	rest = p.edited(rest, "jobs.nats-v5", "jobs.nats-v6", "migrate-052953a6", "migrate-2")
	p.bring(c, rest)
	if stale, err := c.Stale(p.t.Context(), name, rest); err != nil || slices.ContainsFunc(stale, func(o kube.Object) bool { return named(o) == mounted }) {
		p.t.Errorf("%s is mounted by what is no canary, but stale; %v", mounted, err)
	}
	p.bring(c, kube.Finished(rest))
	prune := func() (removed []string) {
		err := c.Prune(p.t.Context(), name, rest, func(o kube.Object, change Change) { removed = append(removed, named(o)+" "+string(change)) })
		if err != nil {
			p.t.Error(err)
		}
		return removed
	}
	want := []string{"Job nats-deployment-migrate-052953a6 removed", "StatefulSet nats-deployment-web-z0-v1 removed", "StatefulSet nats-deployment-web-z1-v1 removed",
		"Service nats-deployment-web removed", "Service nats-deployment-web-0 removed", "Service nats-deployment-web-1 removed",
		"Service nats-deployment-web-2 removed", "Secret nats-deployment.bpm.web-v1 removed",
		"Secret nats-deployment.ig-resolved.web-v1 removed", mounted + " removed", "Secret nats-deployment.jobs.web-v1 removed"}
	if diff := cmp.Diff(want, prune()); diff != "" {
		p.t.Errorf("removed:\n%s", diff)
	}
	if again := prune(); len(again) > 0 {
		p.t.Errorf("removed the second time: %v", again)
	}
	for _, kept := range []string{"copy", "nats-deployment.var-nats-password"} {
		if o, err := c.get(p.t.Context(), kube.Object{"kind": "Secret", "metadata": map[string]any{"name": kept}}); o == nil || err != nil {
			p.t.Errorf("Secret %s is gone, %v", kept, err)
		}
	}
}

// copied makes another Secret of one, as somebody would by hand: cupola has not
// applied it.
func (p *plane) copied(c *Cluster, name, as string) {
	p.t.Helper()
	o, err := c.get(p.t.Context(), kube.Object{"kind": "Secret", "metadata": map[string]any{"name": name}})
	if err != nil || o == nil {
		p.t.Fatal(o, err)
	}
	p.Create("v1", "Secret", kube.Object{"metadata": map[string]any{"name": as, "labels": o.Map("metadata", "labels")}})
}

func (p *plane) checkDelete() {
	p.t.Helper()
	p.Delete("apps/v1", "StatefulSet")
	p.Until("the pods are gone", func() bool { return len(p.pods()) == 0 })
	want := []string{"nats-deployment-nats-pvc-nats-deployment-nats-v1-0 Bound", "nats-deployment-nats-pvc-nats-deployment-nats-v1-1 Bound"}
	if diff := cmp.Diff(want, p.Claims()); diff != "" {
		p.t.Error(diff)
	}
}

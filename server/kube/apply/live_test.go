package apply

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"cupola/server/kube"
)

func insecure() *http.Transport {
	return &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}} //nolint:gosec // a certificate of a minute ago, on loopback
}

// golden are the objects of one of the renderer's own tests. The pretended kubelet makes volumes of one class alone.
func golden(t *testing.T, name string) []kube.Object {
	t.Helper()
	text, err := os.ReadFile("../testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	all, err := kube.Read(bytes.NewReader(bytes.ReplaceAll(text, []byte("storageClassName: fast"), []byte("storageClassName: kwok-volume"))))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// bring applies and waits, and counts what became of the objects.
func (p *plane) bring(c *Cluster, all []kube.Object) map[Change]int {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), patience)
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

// list are the cluster's objects of a kind, sorted by name.
func (p *plane) list(c *Cluster, kind string) (all []kube.Object) {
	p.t.Helper()
	items, err := c.client.Resource(resources[kind]).Namespace("nats").List(p.t.Context(), metav1.ListOptions{})
	if err != nil {
		p.t.Fatal(err)
	}
	for _, i := range items.Items {
		all = append(all, i.Object)
	}
	slices.SortFunc(all, func(a, b kube.Object) int { return strings.Compare(a.Name(), b.Name()) })
	return all
}

// pods are the pods of the services, each with its node's zone and its image.
func (p *plane) pods(c *Cluster) (all []string) {
	for _, o := range p.list(c, "Pod") {
		if o.Label("apps.kubernetes.io/pod-index") != "" {
			all = append(all, fmt.Sprintf("%s %s %s", o.Name(), strings.TrimPrefix(o.Text("spec", "nodeName"), "node-"), o.Items("spec", "containers")[0].Text("image")))
		}
	}
	return all
}

// TestLive brings the renderer's example into a real cluster: all gets ready,
// another time nothing changes, an update stops at its canaries and goes on, an
// errand runs, and volumes outlive their pods.
func TestLive(t *testing.T) {
	p := startPlane(t)
	c := p.open()
	all := golden(t, "nats-secrets.golden.yml") // the canary phase, with values
	if got := p.bring(c, all); got[Created] != len(all) {
		t.Errorf("got %v; want %d created", got, len(all))
	}
	if got := p.bring(c, all); got[Unchanged] != len(all) {
		t.Errorf("the second time: got %v; want %d unchanged", got, len(all))
	}
	known, err := c.Known(t.Context(), "nats-deployment")
	if diff := cmp.Diff(kube.KnownOf(all), known); diff != "" || err != nil {
		t.Errorf("versions in the cluster: %v\n%s", err, diff)
	}
	p.checkUpdate(c, all)
	p.checkErrand(c, all)
	p.checkDelete(c)
	p.bring(c, golden(t, "app.golden.yml"))
}

func (p *plane) checkUpdate(c *Cluster, all []kube.Object) {
	p.t.Helper()
	const was, is = "registry.example.com/org/nats:SLE-27.8-26", "registry.example.com/org/nats:SLE-27.8-27"
	web := func(image string) []string {
		const web = "registry.example.com/org/tests:opensuse-42.3-1"
		return []string{"nats-deployment-web-z0-v1-0 z1 " + web, "nats-deployment-web-z0-v1-1 z1 " + web,
			"nats-deployment-web-z1-v1-0 eu-2 " + web, "nats-deployment-web-z1-v1-1 eu-2 " + web}
	}
	look := func(when string, images ...string) {
		p.t.Helper()
		var got []string
		for _, pod := range p.pods(c) {
			if strings.HasPrefix(pod, "nats-deployment-nats-v1-") { // no zone of its own
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
	var text bytes.Buffer
	if err := kube.Write(&text, all); err != nil {
		p.t.Fatal(err)
	}
	changed, err := kube.Read(strings.NewReader(strings.ReplaceAll(text.String(), was, is)))
	if err != nil {
		p.t.Fatal(err)
	}
	p.settled(c, changed, false)
	p.bring(c, changed)
	look("with canaries", was, is)
	p.bring(c, kube.Finished(changed))
	look("after all", is, is)
	p.settled(c, changed, true)
}

// settled checks whether there is anything to update.
func (p *plane) settled(c *Cluster, all []kube.Object, want bool) {
	p.t.Helper()
	for _, o := range kube.Finished(all) {
		if got, err := c.Settled(p.t.Context(), o); err != nil || got != want {
			p.t.Errorf("%s is settled: %v, %v; want %v", named(o), got, err, want)
		}
	}
}

// checkErrand runs the errand as a user does: kubectl create job --from=cronjob/…
func (p *plane) checkErrand(c *Cluster, all []kube.Object) {
	p.t.Helper()
	at := slices.IndexFunc(all, func(o kube.Object) bool { return o.Kind() == "CronJob" })
	run := kube.Object{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"name": "smoke-1", "namespace": "nats"}, "spec": all[at].Map("spec", "jobTemplate", "spec")}
	p.bring(c, []kube.Object{run})
}

func (p *plane) checkDelete(c *Cluster) {
	p.t.Helper()
	policy := metav1.DeletePropagationForeground
	sets := c.client.Resource(resources["StatefulSet"]).Namespace("nats")
	if err := sets.DeleteCollection(p.t.Context(), metav1.DeleteOptions{PropagationPolicy: &policy}, metav1.ListOptions{}); err != nil {
		p.t.Fatal(err)
	}
	p.until("the pods are gone", func() bool { return len(p.pods(c)) == 0 })
	var names []string
	for _, o := range p.list(c, "PersistentVolumeClaim") {
		names = append(names, o.Name()+" "+o.Text("status", "phase"))
	}
	want := []string{"nats-deployment-nats-pvc-nats-deployment-nats-v1-0 Bound", "nats-deployment-nats-pvc-nats-deployment-nats-v1-1 Bound"}
	if diff := cmp.Diff(want, names); diff != "" {
		p.t.Error(diff)
	}
}

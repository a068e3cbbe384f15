package manifest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestNamesOfTheSeed holds the naming conventions of the document that BOSH on
// Kubernetes began with, to the letter.
func TestNamesOfTheSeed(t *testing.T) {
	n := Names{"nats-deployment"}
	keys := VariableKeys([]string{"nats_password", "system_domain"})
	set := n.StatefulSet("nats", -1, 1)
	got := []string{
		n.Label(), n.BPMConfigs(), n.DataGathering(), n.VarInterpolation(),
		n.Variable(keys["nats_password"]), n.ImplicitVariable(keys["system_domain"]),
		n.Group("nats"),
		n.BPM("nats", 1), n.Resolved("nats", 1), n.WithOps(), n.DesiredManifest(1),
		set, n.Pod(set, 0), n.Pod(set, 1),
		n.Service("nats", 0), n.Service("nats", 1),
	}
	want := []string{
		"nats-deployment", "bpm-configs-nats-deployment", "data-gathering-nats-deployment", "var-interpolation-nats-deployment",
		"nats-deployment.var-nats-password", "nats-deployment.var-implicit-system-domain",
		"nats-deployment-nats",
		"nats-deployment.bpm.nats-v1", "nats-deployment.ig-resolved.nats-v1", "nats-deployment.with-ops", "nats-deployment.desired-manifest-v1",
		"nats-deployment-nats-v1", "nats-deployment-nats-v1-0", "nats-deployment-nats-v1-1",
		"nats-deployment-nats-0", "nats-deployment-nats-1",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestNames holds the names that came later.
func TestNames(t *testing.T) {
	n := Names{"nats-deployment"}
	got := []string{
		n.Jobs("nats", 2), n.Registry("Nats_Release"), n.StatefulSet("nats", 0, 1), n.Claim("nats"),
		n.CronJob("smoke_tests"), n.Job("migrate", []byte("x")),
		Container("nats", "nats"), PreStart("nats"), ProcessPreStart("nats", "main"), WaitFor("nats-deployment-nats"),
	}
	want := []string{
		"nats-deployment.jobs.nats-v2", "nats-deployment.registry-nats-release", "nats-deployment-nats-z0-v1", "nats-deployment-nats-pvc",
		"nats-deployment-smoke-tests", "nats-deployment-migrate-2d711642",
		"nats-nats", "bosh-pre-start-nats", "bpm-pre-start-nats-main", "wait-for-nats-deployment-nats",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSanitize(t *testing.T) {
	long := strings.Repeat("a", 70)
	for name, want := range map[string]string{
		"nats": "nats", "Cloud_Controller": "cloud-controller", "a.b/c": "abc", "-x-": "x", "": "", "é√ß": "",
		strings.Repeat("b", 63): strings.Repeat("b", 63),
		long:                    long[:31] + digest(long),
	} {
		if got := Sanitize(name); got != want {
			t.Errorf("Sanitize(%q): got %q; want %q", name, got, want)
		}
	}
}

func TestLongNamesAreShortenedAndDiffer(t *testing.T) {
	n := Names{strings.Repeat("d", 40)}
	group := strings.Repeat("g", 40)
	var all []string
	for version := range 2 {
		set, cron := n.StatefulSet(group, -1, version+1), n.CronJob(fmt.Sprint(group, version))
		for _, name := range []string{set, cron} {
			if len(name) != maxController || name[:20] != strings.Repeat("d", 19)+"-" {
				t.Errorf("got %q", name)
			}
		}
		all = append(all, set, cron, n.Service(group, version))
	}
	n.Deployment = strings.Repeat("d", 250)
	secret := n.Variable("x")
	if len(secret) != maxSubdomain {
		t.Errorf("got %q", secret)
	}
	seen := map[string]bool{}
	for _, name := range all {
		if seen[name] {
			t.Errorf("%q is there twice", name)
		}
		seen[name] = true
	}
}

func TestVariableKeys(t *testing.T) {
	got := VariableKeys([]string{"adminPass", "nats_password", "ssl/ca", "a_b", "a-b", "A-b", "√", "/x", "a_b"})
	want := map[string]string{
		"adminPass": "adminpass", "nats_password": "nats-password", "ssl/ca": "ssl-ca", "/x": "x",
		"a-b": "a-b", "a_b": "a-b-" + hash8([]byte("a_b")), "A-b": "a-b-" + hash8([]byte("A-b")), "√": hash8([]byte("√")),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

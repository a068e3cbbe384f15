package cell

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
)

func TestPortEnv(t *testing.T) {
	want := []lrp.EnvVar{{Name: "PORT", Value: "8080"}, {Name: "CF_INSTANCE_PORT", Value: "8080"}, {Name: "CF_INSTANCE_ADDR", Value: "10.1.2.3:8080"}}
	if diff := cmp.Diff(want, portEnv("10.1.2.3", []uint16{8080, 9000})); diff != "" {
		t.Errorf("two ports (-want +got):\n%s", diff)
	}
	// A task or a staging: executor's depot/steps/run_step.go.
	want = []lrp.EnvVar{{Name: "CF_INSTANCE_PORT"}, {Name: "CF_INSTANCE_ADDR"}}
	if diff := cmp.Diff(want, portEnv("10.1.2.3", nil)); diff != "" {
		t.Errorf("no ports (-want +got):\n%s", diff)
	}
}

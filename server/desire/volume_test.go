package desire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"cupola/runtime/lrp"
	"cupola/server/bindings"
)

func TestVolumes(t *testing.T) {
	binding := func(guid, instance, mounts string) bindings.Binding {
		return bindings.Binding{GUID: guid, InstanceGUID: instance, VolumeMounts: json.RawMessage(mounts)}
	}
	mount := func(driver, volume, mode string) string {
		return `[{"driver": "` + driver + `", "container_dir": "/var/vcap/data/x", "mode": "` + mode + `", "device": {"volume_id": "` + volume + `"}}]`
	}
	all := []bindings.Binding{
		binding("b1", "i1", mount("cupola", "i1", "rw")), binding("b2", "i2", mount("cupola", "i2", "r")),
		binding("b3", "i3", mount("cupola", "i1", "rw")), // another's
		binding("b4", "i4", mount("nfs", "i4", "rw")), binding("b5", "i5", ""), binding("b6", "i6", "[1]"),
	}
	want := []lrp.Volume{{Name: "i1", Path: "/var/vcap/data/x"}, {Name: "i2", Path: "/var/vcap/data/x", ReadOnly: true}}
	if diff := cmp.Diff(want, volumes(all, all)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[1:], volumes(all, all[1:])); diff != "" {
		t.Errorf("what was unbound since: %s", diff)
	}
}

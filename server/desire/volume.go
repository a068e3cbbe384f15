package desire

import (
	"encoding/json"
	"slices"

	"cupola/runtime/lrp"
	"cupola/server/bindings"
)

// VolumeDriver mounts the directories that the built-in service broker has.
const VolumeDriver = "cupola"

// volumes are the directories that the bindings give to the app: of each
// instance its own alone, whatever a broker says. An instance that the app is no
// longer bound to may be gone, and its directory with it.
func volumes(started, now []bindings.Binding) (list []lrp.Volume) {
	for _, b := range started {
		if !slices.ContainsFunc(now, func(other bindings.Binding) bool { return other.GUID == b.GUID }) {
			continue
		}
		var mounts []struct {
			Driver string
			Path   string `json:"container_dir"`
			Mode   string
			Device struct {
				Volume string `json:"volume_id"`
			}
		}
		if len(b.VolumeMounts) == 0 || json.Unmarshal(b.VolumeMounts, &mounts) != nil {
			continue
		}
		for _, m := range mounts {
			if m.Driver == VolumeDriver && m.Device.Volume == b.InstanceGUID {
				list = append(list, lrp.Volume{Name: m.Device.Volume, Path: m.Path, ReadOnly: m.Mode == "r"})
			}
		}
	}
	return list
}

package databroker

import (
	"cupola/server/desire"
	"cupola/store/cf"
)

// filesRoot is below where apps find the directories that they are bound to:
// Cloud Foundry's place for them.
const filesRoot = "/var/vcap/data/"

func filesService() service {
	return service{name: "files", description: "a directory of this machine, mounted into every app that is bound to it", display: "Files", tags: []string{"files", "volume"},
		plans:  []plan{{name: "small", description: "1 GB of disk", volumeBytes: 1 << 30}, {name: "large", description: "10 GB of disk", volumeBytes: 10 << 30}},
		ending: "tar"}
}

// mounted is what an app is given of an instance that is a directory.
func mounted(i *cf.DataInstance) object {
	at := filesRoot + i.GUID
	return object{"credentials": object{"path": at}, "volume_mounts": []object{{"driver": desire.VolumeDriver, "container_dir": at, "mode": "rw", "device_type": "shared",
		"device": object{"volume_id": i.GUID, "mount_config": object{}}}}}
}

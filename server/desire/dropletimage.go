package desire

import (
	"strconv"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// DropletImage is what an image of a droplet is made of, which is to run where no cell is.
type DropletImage struct {
	DockerMetadata
	RootFS string
	Layers []lrp.Layer
	Env    []string // NAME=value
	Labels map[string]string
}

// ImageOf describes the image of a buildpack's droplet. command is its own start command: containers are given others as arguments
// of the same entrypoint, LauncherArgs. What a cell and Cloud Controller tell every container is in the environment, as far as it
// is always the same.
func ImageOf(d *cf.Droplet, command string) DropletImage {
	vcap, port := strconv.Itoa(contract.VcapID), itoa(contract.DefaultPort)
	return DropletImage{
		DockerMetadata: DockerMetadata{Entrypoint: []string{contract.Launcher, "app"}, Cmd: LauncherArgs(command), Workdir: contract.Home, User: vcap + ":" + vcap,
			Ports: []DockerPort{{Port: contract.DefaultPort, Protocol: "tcp"}}},
		RootFS: rootFS(d.Lifecycle, d.Stack), Layers: layers(d),
		Env: []string{"PATH=/usr/local/bin:/usr/bin:/bin", "USER=" + contract.VcapName, "LANG=" + defaultLang, contract.EnvPort + "=" + port, "VCAP_APP_PORT=" + port, "VCAP_APP_HOST=0.0.0.0"},
		Labels: map[string]string{
			"org.cloudfoundry.app.guid": d.AppGUID, "org.cloudfoundry.droplet.guid": d.GUID, "org.cloudfoundry.droplet.sha256": d.Digest,
			"org.cloudfoundry.stack.name": d.Stack,
		},
	}
}

// LauncherArgs are the arguments that such an image's entrypoint takes for a start command; "" is that of the droplet.
func LauncherArgs(command string) []string { return []string{command, ""} }

package desire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// DockerMetadata is the execution metadata of a droplet that is an image, as
// CF's docker lifecycle writes it.
type DockerMetadata struct {
	Cmd        []string     `json:"cmd,omitempty"`
	Entrypoint []string     `json:"entrypoint,omitempty"`
	Workdir    string       `json:"workdir,omitempty"`
	Ports      []DockerPort `json:"ports,omitempty"`
	User       string       `json:"user,omitempty"`
	// Processes are those of an image that Cloud Native Buildpacks built.
	Processes []ImageProcess `json:"processes,omitempty"`
}

// ImageProcess is a process type of an image, which the launcher in the image starts by its
// name (buildpacks/spec: platform.md, launcher).
type ImageProcess struct {
	Type string `json:"type"`
}

// processDir is where such an image has a program for each process type.
const processDir = "/cnb/process/"

// program is that of a process type; "" for one that the image starts by its own command.
func (m DockerMetadata) program(kind string) string {
	if slices.Contains(m.Processes, ImageProcess{kind}) {
		return processDir + kind
	}
	return ""
}

// ProcessTypes are what a droplet says that the image runs: as web its own command, and
// each process type by its program.
func (m DockerMetadata) ProcessTypes() map[string]string {
	types := map[string]string{"web": m.Command()}
	for _, p := range m.Processes {
		if contract.CheckProcess(p.Type, "") == nil && p.Type != "" && !strings.ContainsAny(p.Type, "/ \t\n") && len(types) < contract.MaxProcesses {
			types[p.Type] = processDir + p.Type
		}
	}
	return types
}

// DockerPort is a port that an image exposes.
type DockerPort struct {
	Port     uint16 `json:"Port"`
	Protocol string `json:"Protocol"` // tcp or udp
}

// Text is the metadata as a droplet has it.
func (m DockerMetadata) Text() string {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // strings and numbers always marshal
	}
	return string(b)
}

// Command is what the image runs, in one line.
func (m DockerMetadata) Command() string {
	return strings.Join(slices.Concat(m.Entrypoint, m.Cmd), " ")
}

func isDocker(d *cf.Droplet) bool { return d.Lifecycle.Type == cf.LifecycleDocker }

func dockerMetadata(d *cf.Droplet) (m DockerMetadata) {
	_ = json.Unmarshal([]byte(d.ExecutionMetadata), &m) // what does not read has no command, which the contract.Launcher says
	return m
}

// dockerRun runs a command in an image, or what the image says, as whom the
// image says: root where it does not.
func dockerRun(d *cf.Droplet, as, command string) lrp.Run {
	m := dockerMetadata(d)
	argv := slices.Concat(m.Entrypoint, m.Cmd)
	if kind, ok := strings.CutPrefix(command, processDir); ok && m.program(kind) != "" {
		argv = []string{command} // such images need not have a shell
	} else if command != "" {
		argv = []string{"/bin/sh", "-c", command}
	}
	if len(argv) == 0 {
		argv = []string{contract.Launcher, "/", "", d.ExecutionMetadata} // which says that there is none
	}
	r := lrp.Run{Path: argv[0], Args: argv[1:], Dir: m.Workdir, User: cmp.Or(as, m.User, dockerUser), Nofile: maxFiles}
	if r.Dir == "" {
		r.Dir = "/"
	}
	return r
}

// dockerUser is whom an image runs as that names no user.
const dockerUser = "root"

// User is whom a process or a task of an app runs as that asks for no user (CC:
// ProcessModel.run_action_user, TaskModel.run_action_user). d is what it runs; nil for
// a droplet that is gone.
func User(app *cf.App, d *cf.Droplet) string {
	switch {
	case app.Lifecycle.Type != cf.LifecycleDocker:
		return contract.VcapName
	case d == nil:
		return dockerUser
	}
	return cmp.Or(dockerMetadata(d).User, dockerUser)
}

// dockerPorts are the TCP ports that an image exposes, else contract.DefaultPort.
func dockerPorts(d *cf.Droplet) []uint16 {
	var ports []uint16
	for _, p := range dockerMetadata(d).Ports {
		if p.Protocol == "tcp" && !slices.Contains(ports, p.Port) {
			ports = append(ports, p.Port)
		}
	}
	if len(ports) == 0 {
		return []uint16{contract.DefaultPort}
	}
	return ports
}

// base begins an environment: with what the image has, or for buildpacks with
// the language.
func (v *vars) base(d *cf.Droplet) {
	if !isDocker(d) {
		v.set("LANG", defaultLang)
		if isCNB(d) {
			v.set(contract.EnvCNBLayers, contract.CNBLayers)
			v.set(contract.EnvCNBApp, contract.CNBWorkspace)
		}
		return
	}
	if d.Lifecycle.Image == nil {
		return
	}
	for _, e := range d.Lifecycle.Image.Env {
		name, value, _ := strings.Cut(e, "=")
		v.set(name, value)
	}
}

package desire

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// defaultStartTimeout is Cloud Controller's default_health_check_timeout.
const defaultStartTimeout = 60 * time.Second

// ProcessIn is what the Desired of a process depends on.
type ProcessIn struct {
	Owner
	Process *cf.Process
	Droplet *cf.Droplet   // that of DropletGUID, STAGED
	Ports   []uint16      // of the process' route destinations; 0 of one that names none
	Package cf.Credential // of the droplet's docker package
}

// DropletGUID names the droplet that a process runs: the one that it was started
// with, else the app's.
func DropletGUID(p *cf.Process, app *cf.App) string { return cmp.Or(p.DropletGUID, app.DropletGUID) }

// At is what a process depends on when it was started with a revision: that one's
// environment and command, whatever the app's are by now. nil changes nothing,
// and neither does a revision of an app that has none any longer.
func (in ProcessIn) At(r *cf.Revision) ProcessIn {
	if r == nil || !in.App.RevisionsOn {
		return in
	}
	app, p := *in.App, *in.Process
	app.Env, p.Command = r.Env, r.Commands[p.Type]
	in.App, in.Process = &app, &p
	return in
}

// Process is the Desired of a process of a STARTED app.
func Process(in ProcessIn) lrp.Desired {
	p := in.Process
	ports := in.ports()
	registry := imageCredential(in.App, in.Droplet.Lifecycle, in.Package)
	return lrp.Desired{
		ProcessGUID: ProcessGUID(p, in.App),
		Domain:      lrp.DomainApps,
		Instances:   p.Instances,
		RunInfo: lrp.RunInfo{
			RootFS: rootFS(in.Droplet.Lifecycle, in.Droplet.Stack), ImageUsername: registry.Username, ImagePassword: registry.Password,
			Layers: layers(in.Droplet), Lifecycle: true,
			Files:  in.files(),
			Env:    in.env(ports[0]),
			Action: in.action(),

			Checks: lrp.CheckDefinition{
				Liveness:  liveness(p.HealthCheck, p.Type, ports[0]),
				Readiness: checks(p.ReadinessCheck, ports[0]),
			},
			StartTimeout: startTimeout(p.HealthCheck),

			MemoryMB: p.MemoryMB, DiskMB: p.DiskMB, CPUWeight: cpuWeight(p.MemoryMB),
			LogRateLimitByte: p.LogRateLimit,
			Ports:            ports,
			Volumes:          volumes(in.startedWith().Bindings, in.Bindings),
			Egress:           in.egress(false),
			EgressGroup:      in.egressGroup(false),
			PolicyGroup:      in.App.GUID,
			Constraint:       constraint(p.Placement),
			Log:              in.log(),

			OrganizationalUnits: in.units(), SystemCertificatesPath: systemCertificates,
		},
	}
}

func layers(d *cf.Droplet) []lrp.Layer {
	if isDocker(d) {
		return nil
	}
	return []lrp.Layer{{Source: lrp.Blobbed(d.Digest), Dest: contract.Home}}
}

// run is what runs a command of a droplet: for a buildpack's, the launcher.
// "app" is the app's directory.
func run(d *cf.Droplet, as, command string) lrp.Run {
	if isDocker(d) {
		return dockerRun(d, as, command)
	}
	if isCNB(d) {
		return lrp.Run{Path: contract.Launcher, Args: []string{"app", command, d.ExecutionMetadata}, User: cmp.Or(as, contract.VcapName), Nofile: maxFiles}
	}
	return lrp.Run{Path: contract.Launcher, Args: []string{"app", command, d.ExecutionMetadata}, Dir: contract.Home, User: cmp.Or(as, contract.VcapName), Nofile: maxFiles}
}

// command is what the user asked for, else what the droplet has for the type;
// an image knows its own.
func (in ProcessIn) command() string {
	switch {
	case in.Process.Command != "":
		return in.Process.Command
	case isDocker(in.Droplet):
		return dockerMetadata(in.Droplet).program(in.Process.Type)
	}
	return in.Droplet.ProcessTypes[in.Process.Type]
}

// ports are the ports of the process, first the one that PORT names and the health check
// asks: the default one, or the image's, unless every route names a port (CC: UpdateRouteDestinations,
// ProcessModel#open_ports).
func (in ProcessIn) ports() []uint16 {
	named := slices.Compact(slices.Sorted(slices.Values(in.Ports)))
	if len(named) > 0 && named[0] != 0 {
		return named
	}
	ports := []uint16{contract.DefaultPort}
	if isDocker(in.Droplet) {
		ports = dockerPorts(in.Droplet)
	}
	for _, p := range named {
		if p != 0 && !slices.Contains(ports, p) {
			ports = append(ports, p)
		}
	}
	return ports
}

// env is the environment in Cloud Controller's order.
func (in ProcessIn) env(port uint16) []lrp.EnvVar {
	var v vars
	v.base(in.Droplet)
	v.merge(in.Running)
	v.merge(in.App.Env)
	o := in.startedWith()
	v.system(o, in.application(in.ownMemoryMB()))
	v.database(o.Bindings)
	v.set(contract.EnvPort, itoa(port))
	if !isDocker(in.Droplet) && !isCNB(in.Droplet) {
		v.set("VCAP_APP_PORT", itoa(port))
		v.set("VCAP_APP_HOST", "0.0.0.0")
	}
	return v
}

// application is VCAP_APPLICATION of a program that may use so much memory.
func (in ProcessIn) application(memoryMB int) vcapApplication {
	app := in.vcapApplication(memoryMB, in.Process.DiskMB)
	app.ProcessID, app.ProcessType = in.Process.GUID, in.Process.Type
	app.Version = version(in.Process, in.App)
	app.ApplicationVersion = app.Version
	return app
}

// ownMemoryMB is what the sidecars leave to the process itself (CC: Diego::Environment).
func (in ProcessIn) ownMemoryMB() int {
	left := in.Process.MemoryMB
	for _, s := range in.sidecars() {
		left -= s.MemoryMB
	}
	return left
}

// sidecarEnv is what a sidecar has in its environment instead of what the process has.
func (in ProcessIn) sidecarEnv(s cf.Sidecar) []lrp.EnvVar {
	var v vars
	v.limits(in.application(cmp.Or(s.MemoryMB, in.Process.MemoryMB)))
	return v
}

// sidecars are those that run beside the process, each once.
func (in ProcessIn) sidecars() []cf.Sidecar {
	seen := map[string]bool{}
	return slices.DeleteFunc(slices.Clone(in.allSidecars()), func(s cf.Sidecar) bool {
		if seen[s.Name] || !slices.Contains(s.ProcessTypes, in.Process.Type) {
			return true
		}
		seen[s.Name] = true
		return false
	})
}

// allSidecars are those of the process. Of a process that was started with another
// droplet than the app's current one they are the user's and that droplet's own.
func (in ProcessIn) allSidecars() []cf.Sidecar {
	if in.Droplet.GUID == in.App.DropletGUID {
		return in.Process.Sidecars
	}
	var users []cf.Sidecar
	for _, s := range in.Process.Sidecars {
		if s.Origin != "buildpack" {
			users = append(users, s)
		}
	}
	return append(users, in.Droplet.Sidecars...)
}

// action is the process and its sidecars. When one ends, so do all.
func (in ProcessIn) action() lrp.Action {
	all := []lrp.Action{run(in.Droplet, in.Process.User, in.command()).Action()}
	for _, s := range in.sidecars() {
		r := run(in.Droplet, in.Process.User, s.Command)
		r.Env = in.sidecarEnv(s)
		r.LogSource = in.log().Source + "/SIDECAR/" + strings.ToUpper(s.Name)
		all = append(all, r.Action())
	}
	return lrp.Codependent(all...)
}

func (in ProcessIn) log() lrp.LogTarget {
	tags := in.tags()
	tags["process_id"], tags["process_type"] = in.Process.GUID, in.Process.Type
	return lrp.LogTarget{GUID: in.App.GUID, Source: "APP/PROC/" + strings.ToUpper(in.Process.Type), Tags: tags}
}

// cpuWeight is Cloud Controller's: memory's share of 8 GiB in percent, within
// bounds.
func cpuWeight(memoryMB int) int {
	const lowest, highest = 128, 8192
	return 100 * min(max(memoryMB, lowest), highest) / highest
}

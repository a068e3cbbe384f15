package desire

import (
	"cupola/runtime/lrp"
	"cupola/store/cf"
)

// TaskIn is what an app's task depends on.
type TaskIn struct {
	Owner
	Task    *cf.Task
	Droplet *cf.Droplet   // the task's, STAGED
	Package cf.Credential // of the droplet's docker package
}

// Task is what runs for an app's task.
func Task(in TaskIn) lrp.RunInfo {
	t := in.Task
	registry := imageCredential(in.App, in.Droplet.Lifecycle, in.Package)
	return lrp.RunInfo{
		RootFS: rootFS(in.Droplet.Lifecycle, in.Droplet.Stack), ImageUsername: registry.Username, ImagePassword: registry.Password,
		Layers: layers(in.Droplet), Lifecycle: true,
		Files:  in.files(),
		Env:    in.env(),
		Action: in.run().Action(),

		MemoryMB: t.MemoryMB, DiskMB: t.DiskMB, CPUWeight: cpuWeight(t.MemoryMB),
		LogRateLimitByte: t.LogRateLimit,
		Volumes:          volumes(in.Bindings, in.Bindings),
		Egress:           in.egress(false),
		EgressGroup:      in.egressGroup(false),
		PolicyGroup:      in.App.GUID,
		Constraint:       constraint(t.Placement),
		Log:              lrp.LogTarget{GUID: in.App.GUID, Source: taskSource(t), Instance: "0", Tags: in.tags()},

		OrganizationalUnits: in.units(), SystemCertificatesPath: systemCertificates,
	}
}

// taskSource is the source of a task's lines. Those of a release command are of the staging
// of its build, whose lines clients print while they push.
func taskSource(t *cf.Task) string {
	if t.BuildGUID != "" {
		return "STG"
	}
	return "APP/TASK/" + t.Name
}

// run runs the command. To the launcher of Cloud Native Buildpacks a task's is none of
// the processes (CC: CNB::LifecycleProtocol#task_action_builder).
func (in TaskIn) run() lrp.Run {
	r := run(in.Droplet, in.Task.User, in.Task.Command)
	if isCNB(in.Droplet) {
		r.Args = []string{"--", in.Task.Command}
	}
	return r
}

func (in TaskIn) env() []lrp.EnvVar {
	var v vars
	v.base(in.Droplet)
	v.merge(in.Running)
	v.merge(in.Task.Env)
	app := in.vcapApplication(in.Task.MemoryMB, in.Task.DiskMB)
	app.Version, app.ApplicationVersion = in.Task.GUID, in.Task.GUID // Cloud Controller makes one up for each task
	v.system(in.Owner, app)
	v.database(in.Bindings)
	return v
}

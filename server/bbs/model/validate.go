package model

import (
	"net/url"

	"cupola/runtime/pattern"
	"cupola/server/bbs/bbspb"
)

// Diego's limits.
const (
	maxAnnotation = 10 << 10
	maxRoutes     = 128 << 10
	maxFiles      = 1 << 20
)

// maxGUID is cupola's own: the name of a process or task goes into rows and
// logs. Cloud Controller's are 73 long.
const maxGUID = 255

var guidPattern = pattern.Lazy(`^[a-zA-Z0-9_-]+$`)

func badGUID(s string) bool { return len(s) > maxGUID || !guidPattern().MatchString(s) }

// ValidateDesired says what Diego refuses of a DesiredLRP; nil for nothing.
func ValidateDesired(d *bbspb.DesiredLRP) error {
	var f faults
	if d == nil {
		f.field("desired_lrp", true)
		return f.err()
	}
	f.field("volumeMountedFiles", tooLarge(d.VolumeMountedFiles))
	f.field("domain", d.Domain == "")
	f.field("rootfs", badRootFS(d.RootFs))
	f.field("instances", d.Instances < 0)
	f.field("memory_mb", d.MemoryMb < 0)
	f.field("disk_mb", d.DiskMb < 0)
	f.field("log_rate_limit_bytes_per_second", d.LogRateLimit.GetBytesPerSecond() < -1)
	f.field("annotation", len(d.Annotation) > maxAnnotation)
	f.field("max_pids", d.MaxPids < 0)
	f.privileged(d.Privileged)
	f.field("routes", routesTooLarge(d.Routes))
	// An empty map is not on the wire, and Diego wants one.
	f.field("metric_tags", len(d.MetricTags) == 0)
	f.in("metric_tags", func(f *faults) { f.metricTags(d.MetricTags, d.MetricsGuid) })
	f.field("process_guid", badGUID(d.ProcessGuid))
	f.optional("setup", d.Setup)
	f.required(d.Action)
	f.optional("monitor", d.Monitor)
	f.env(d.Env)
	for _, r := range d.EgressRules {
		f.in("egress_rules", func(f *faults) { f.rule(r) })
	}
	f.ports(d.Ports)
	f.dependencies(d.CachedDependencies)
	f.layers(d.ImageLayers, d.LegacyDownloadUser)
	f.in("sidecars", func(f *faults) { f.sidecars(d.Sidecars) })
	f.mounts(d.VolumeMounts)
	f.credentials(d.ImageUsername, d.ImagePassword)
	if d.CheckDefinition != nil {
		f.in("check_definition", func(f *faults) { f.checks(d.CheckDefinition) })
	}
	return f.err()
}

// ValidateUpdate says what Diego refuses of an update of a DesiredLRP.
func ValidateUpdate(r *bbspb.UpdateDesiredLRPRequest) error {
	var f faults
	f.field("process_guid", badGUID(r.ProcessGuid))
	u := r.Update
	f.field("instances", u.GetInstances() < 0)
	f.field("annotation", len(u.GetAnnotation()) > maxAnnotation)
	f.field("routes", routesTooLarge(u.GetRoutes()))
	f.in("metric_tags", func(f *faults) { f.metricTags(u.GetMetricTags(), "") })
	if u != nil {
		f.field("image_password", u.ImageUsername != nil && u.ImagePassword == nil)
		f.field("image_username", u.ImageUsername == nil && u.ImagePassword != nil)
	}
	return f.err()
}

// ValidateTask says what Diego refuses of a Task.
func ValidateTask(r *bbspb.DesireTaskRequest) error {
	var f faults
	f.field("task_guid", badGUID(r.TaskGuid))
	f.field("domain", r.Domain == "")
	d := r.Definition
	if d == nil {
		f.field("task_definition", true)
		return f.err()
	}
	f.field("rootfs", badRootFS(d.RootFs))
	f.required(d.Action)
	f.field("memory_mb", d.MemoryMb < 0)
	f.field("disk_mb", d.DiskMb < 0)
	f.field("log_rate_limit", d.LogRateLimit.GetBytesPerSecond() < -1)
	f.field("max_pids", d.MaxPids < 0)
	f.privileged(d.Privileged)
	f.field("annotation", len(d.Annotation) > maxAnnotation)
	for _, rule := range d.EgressRules {
		var inner faults
		inner.rule(rule)
		f.field("egress_rules", inner.err() != nil) // Diego does not say what is wrong with it
	}
	f.field("completion_callback_url", badCallback(d.CompletionCallbackUrl))
	f.field("volumeMountedFiles", tooLarge(d.VolumeMountedFiles))
	f.credentials(d.ImageUsername, d.ImagePassword)
	f.dependencies(d.CachedDependencies)
	f.layers(d.ImageLayers, d.LegacyDownloadUser)
	f.mounts(d.VolumeMounts)
	return f.err()
}

// privileged refuses what would be root on the machine. Diego takes it; here it
// would only crash again and again.
func (f *faults) privileged(wanted bool) {
	f.say("Invalid field: privileged (privileged containers are not supported: leave it out)", wanted)
}

// ValidateGUID says what Diego refuses of a request that has only a GUID.
func ValidateGUID(field, guid string) error {
	var f faults
	f.field(field, guid == "")
	return f.err()
}

// ValidateKey says what Diego refuses of the key of an ActualLRP.
func ValidateKey(k *bbspb.ActualLRPKey) error {
	var f faults
	if k == nil {
		f.field("actual_lrp_key", true)
		return f.err()
	}
	f.field("process_guid", k.ProcessGuid == "")
	f.field("index", k.Index < 0)
	f.field("domain", k.Domain == "")
	return f.err()
}

func badRootFS(s string) bool {
	u, err := url.Parse(s)
	return err != nil || u.Scheme == ""
}

func badCallback(s string) bool {
	if s == "" {
		return false
	}
	u, err := url.Parse(s)
	return err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https"
}

func tooLarge(files []*bbspb.File) bool {
	size := 0
	for _, f := range files {
		size += len(f.GetContent())
	}
	return size > maxFiles
}

func routesTooLarge(r *bbspb.Routes) bool {
	size := 0
	for _, v := range r.GetRoutes() {
		size += len(v)
	}
	return size > maxRoutes
}

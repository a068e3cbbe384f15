package manifests

import (
	"cupola/server/control"
	"cupola/server/control/audit"
	"cupola/server/manifest"
	"cupola/store/cf"
)

// requestOf is the change of an app that a manifest's entry asks for, as audit events
// show it (CC: AppManifestMessage.app_lifecycle_hash).
func requestOf(m *manifest.App) audit.Data {
	request, data, lifecycle := audit.Data{}, audit.Data{}, audit.Data{}
	if m.BuildpackSet {
		data["buildpacks"] = audit.Buildpacks(m.Buildpacks)
	}
	if m.Stack != nil {
		data["stack"] = *m.Stack
	}
	if m.CredentialsSet {
		data["credentials"] = audit.Hidden
	}
	if m.Lifecycle != nil {
		lifecycle["type"] = *m.Lifecycle
	}
	switch {
	case m.Docker && m.Lifecycle == nil:
		lifecycle["type"] = cf.LifecycleDocker
	case len(data) > 0:
		lifecycle["data"] = data
	}
	if len(lifecycle) > 0 {
		request["lifecycle"] = lifecycle
	}
	if m.Metadata != nil {
		request["metadata"] = m.Metadata
	}
	return request
}

// updateOf is what a manifest asks for of a process (CC:
// AppManifestMessage.process_update_attributes_from_process, and ManifestProcessUpdateMessage,
// which calls three of them by a second name too).
func updateOf(m manifest.Process) audit.Data {
	request := audit.Data{"type": m.Type}
	if m.Command != nil {
		request["command"] = audit.Hidden
	}
	if m.User != nil {
		request["user"] = control.OrNil(*m.User)
	}
	give(request, "health_check_http_endpoint", m.Health.Endpoint)
	give(request, "health_check_endpoint", m.Health.Endpoint)
	give(request, "timeout", m.Health.Timeout)
	give(request, "health_check_timeout", m.Health.Timeout)
	give(request, "health_check_type", m.Health.Type)
	give(request, "health_check_invocation_timeout", m.Health.InvocationTimeout)
	give(request, "health_check_interval", m.Health.Interval)
	give(request, "readiness_health_check_http_endpoint", m.Readiness.Endpoint)
	give(request, "readiness_health_check_endpoint", m.Readiness.Endpoint)
	give(request, "readiness_health_check_type", m.Readiness.Type)
	give(request, "readiness_health_check_invocation_timeout", m.Readiness.InvocationTimeout)
	give(request, "readiness_health_check_interval", m.Readiness.Interval)
	return request
}

// scaleOf is how a manifest scales a process (CC:
// ManifestProcessScaleMessage.to_process_scale_message).
func scaleOf(m manifest.Process) audit.Data {
	request := audit.Data{}
	give(request, "instances", m.Instances)
	give(request, "memory_in_mb", m.MemoryMB)
	give(request, "disk_in_mb", m.DiskMB)
	give(request, "log_rate_limit_in_bytes_per_second", m.LogRate)
	return request
}

// give adds a value that is given.
func give[T any](request audit.Data, name string, v *T) {
	if v != nil {
		request[name] = *v
	}
}

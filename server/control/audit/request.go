package audit

import "cupola/server/desire"

// Request is a request as events show it: without what may be secret. It changes the
// request. (CC: AppEventRepository.app_audit_hash and the audit_hash of messages.)
func Request(r Data) Data {
	for _, name := range []string{"credentials", "parameters", "environment_variables", "command"} {
		if _, ok := r[name]; ok {
			r[name] = Hidden
		}
	}
	for _, name := range []string{"syslog_drain_url", "route_service_url"} {
		if text, ok := r[name].(string); ok {
			r[name] = desire.Redact(text)
		}
	}
	data, _ := r["data"].(Data) // of a package
	if _, ok := data["password"]; ok {
		data["password"] = censored
	}
	if lifecycle, ok := r["lifecycle"].(Data); ok {
		hideLifecycle(lifecycle) // RFC-0046 has credentials next to the data
		if data, ok := lifecycle["data"].(Data); ok {
			hideLifecycle(data)
		}
	}
	return r
}

// hideLifecycle takes the secrets out of a lifecycle or its data.
func hideLifecycle(data Data) {
	if _, ok := data["credentials"]; ok {
		data["credentials"] = Hidden
	}
	if list, ok := data["buildpacks"].([]any); ok {
		for i, b := range list {
			if text, ok := b.(string); ok {
				list[i] = desire.Redact(text)
			}
		}
	}
}

// Buildpacks are names and URLs of buildpacks, without passwords.
func Buildpacks(list []string) []string {
	out := []string{}
	for _, b := range list {
		out = append(out, desire.Redact(b))
	}
	return out
}

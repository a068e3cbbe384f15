package api

import (
	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store/cf"
)

// redacted is what Cloud Controller shows of credentials.
const redacted = "***"

func viewLifecycle(l cf.Lifecycle, have cf.Credentials) doc {
	if l.Type == cf.LifecycleDocker {
		return doc{"type": l.Type, "data": doc{}}
	}
	buildpacks := []string{}
	for _, b := range l.Buildpacks {
		buildpacks = append(buildpacks, desire.Redact(b))
	}
	data := doc{"buildpacks": buildpacks, "stack": control.OrNil(l.Stack)}
	if len(have) > 0 {
		data["credentials"] = redacted
	}
	return doc{"type": l.Type, "data": data}
}

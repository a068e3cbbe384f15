package api

import (
	"cupola/server/control"
	"cupola/server/desire"
	"cupola/store/cf"
)

// What Cloud Controller shows of credentials, and of other secrets.
const (
	redacted  = "***"
	concealed = "[PRIVATE DATA HIDDEN]"
)

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

package doctor

import (
	"context"
	"fmt"
	"slices"
)

// templates reports what renders the templates of BOSH releases. Without Ruby
// many releases do not deploy; nothing else is affected.
func (m *machine) templates(ctx context.Context) Result {
	at := slices.IndexFunc(toolchains(), func(t toolchain) bool { return t.name == "ruby" })
	version := toolchains()[at].version(ctx, m.root)
	f, err := m.facts()
	if err != nil {
		return failed(err, newDir)
	}
	return m.judgeTemplates(version, f.stack)
}

func (m *machine) judgeTemplates(version, stack string) Result {
	const without = "cupola renders simple ones; others need Ruby in a release image"
	switch {
	case version == "":
		return fine(without + " (or on this machine: " + m.install("ruby") + ")")
	case stack != "host":
		return fine(without + " (ruby " + version + " is installed, but containers cannot use this machine's programs)")
	}
	return fine(fmt.Sprintf("cupola renders simple ones; ruby %s renders others in a sandbox", version))
}

package doctor

import (
	"context"
	"fmt"
	"slices"
)

// templates tells what renders the templates of BOSH releases. Without Ruby many
// releases do not deploy, but nothing else is amiss.
func (m *machine) templates(ctx context.Context) Result {
	at := slices.IndexFunc(toolchains(), func(t toolchain) bool { return t.name == "ruby" })
	version := toolchains()[at].version(ctx, m.root)
	f, err := m.facts()
	if err != nil {
		return failed(err, newDir)
	}
	return judgeTemplates(version, f.stack)
}

func judgeTemplates(version, stack string) Result {
	const without = "simple ones by cupola itself; the others by the Ruby of a release image, if there is one"
	switch {
	case version == "":
		return fine(without + " (apt-get install ruby has this machine's do it)")
	case stack != "host":
		return fine(without + " (ruby " + version + " is here, but containers cannot run on this machine's programs)")
	}
	return fine(fmt.Sprintf("simple ones by cupola itself; the others by ruby %s in a sandbox", version))
}

package apps

import (
	"fmt"
	"strings"

	"cupola/cmd/cupola/command"
	"cupola/cmd/cupola/why"
)

type whyCmd struct{ appFlags }

// Run says why instances of an app do not run.
func (c *whyCmd) Run(e *command.Env) error {
	api, path, err := c.find(e.Ctx)
	if err != nil {
		return err
	}
	lines, err := why.Explain(e.Ctx, api, strings.TrimSuffix(path, "/features"))
	for _, l := range lines {
		fmt.Fprintln(e.Out, command.Printable(l))
	}
	return err
}

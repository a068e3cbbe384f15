package main

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/cupola/cli"
	"cupola/cmd/cupola/command"
	"cupola/server/config"
)

// readYAML reads a configuration file.
func readYAML(r io.Reader) (map[string]cli.Setting, error) {
	var document yaml.Node
	if err := yaml.NewDecoder(r).Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	values, all := map[string]any{}, map[string]cli.Setting{}
	if document.IsZero() {
		return all, nil
	}
	if err := document.Decode(&values); err != nil {
		return nil, err
	}
	lines := map[string]int{}
	if pairs := document.Content[0].Content; document.Content[0].Kind == yaml.MappingNode {
		for i := 0; i < len(pairs); i += 2 {
			lines[pairs[i].Value] = pairs[i].Line
		}
	}
	for key, value := range values {
		all[key] = cli.Setting{Value: value, Line: lines[key]}
	}
	return all, nil
}

type configCmd struct {
	Print configPrintCmd `cmd:"" help:"Print the configuration that 'serve' would have with the same flags, as YAML and without secrets."`
}

type configPrintCmd struct {
	Config config.Config `embed:""`
	Origin bool          `help:"Say where each value comes from: a flag, an environment variable, a line of the configuration file, or the default."`

	flags []*cli.Flag
}

// notShown are flags that are none of a daemon's settings.
var notShown = []string{"help", "config", "origin"}

// parsed is called with the flags as they were given.
func (c *configPrintCmd) parsed(flags []*cli.Flag) { c.flags = flags }

// Run prints each setting in a line. What is not set, or not shown, is a comment.
func (c *configPrintCmd) Run(e *command.Env) error {
	shown := c.Config.Redacted()
	for _, f := range c.flags {
		if slices.Contains(notShown, f.Name) {
			continue
		}
		line, err := setting(f, shown)
		if err != nil {
			return err
		}
		if c.Origin {
			line += "  # " + f.Origin()
		}
		if _, err := fmt.Fprintln(e.Out, line); err != nil {
			return err
		}
	}
	return nil
}

// setting is a line of YAML.
func setting(f *cli.Flag, shown map[string]any) (string, error) {
	value, set := shown[f.Name]
	switch {
	case value == config.Hidden:
		return fmt.Sprintf("# %s: %s", f.Name, config.Hidden), nil
	case !set && f.HasDefault:
		value = f.Default
	case !set && f.TakesValue():
		return fmt.Sprintf("# %s: (not set)", f.Name), nil
	case !set:
		value = f.Given()
	}
	var node yaml.Node
	if err := node.Encode(value); err != nil {
		return "", err
	}
	if node.Kind != yaml.ScalarNode {
		node.Style = yaml.FlowStyle
	}
	text, err := yaml.Marshal(map[string]*yaml.Node{f.Name: &node})
	return string(text[:max(0, len(text)-1)]), err
}

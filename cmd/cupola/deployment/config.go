package deployment

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
	"time"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/bosh"
	"cupola/server/bosh/config"
	"cupola/server/bosh/redact"
	"cupola/server/bosh/tree"
)

// configFlags are configs from files, for commands that need no daemon.
type configFlags struct {
	CloudConfig   []string `help:"Use a cloud-config from a file; may be repeated." sep:"none" placeholder:"FILE"`
	RuntimeConfig []string `help:"Use a runtime-config from a file; may be repeated." sep:"none" placeholder:"FILE"`
}

// configs reads the files; each is called by its name.
func (f *configFlags) configs(ctx context.Context) (all config.Set, err error) {
	for _, files := range []struct {
		kind  config.Type
		paths []string
	}{{config.Cloud, f.CloudConfig}, {config.Runtime, f.RuntimeConfig}} {
		for _, path := range files.paths {
			file, err := readSource(ctx, path)
			if err != nil {
				return nil, err
			}
			all = append(all, config.Config{Type: files.kind, Name: path, Content: string(file.Text)})
		}
	}
	return all, nil
}

// storedConfigs are those that the daemon's next deploy uses.
func storedConfigs(e *command.Env, api *capi.Client) (all config.Set, err error) {
	err = api.Call(e.Ctx, "GET", "/v1/configs?latest=true", nil, &all)
	return all, err
}

// configView is a version of a config as the API shows it.
type configView struct {
	config.Config
	CreatedAt time.Time `json:"created_at"`
}

// namedConfig says which config a command is about.
type namedConfig struct {
	Type string `help:"The config's type: cloud, runtime, or another, which has no effect." default:"" placeholder:"TYPE"`
	Name string `help:"The config's name." default:"default" placeholder:"NAME"`
}

func (c namedConfig) query() string {
	return "/v1/configs?" + url.Values{"type": {c.Type}, "name": {c.Name}}.Encode()
}

// latest is the last version of the config, or nil.
func (c namedConfig) latest(e *command.Env, api *capi.Client) (*configView, error) {
	var all []configView
	if err := api.Call(e.Ctx, "GET", c.query()+"&latest=true", nil, &all); err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// typed is a config of a type that its command names.
type typed struct {
	Name string `help:"The config's name." default:"default" placeholder:"NAME"`
}

type cloudConfigCmd struct {
	capi.Flags
	typed
}

// Run prints a cloud-config.
func (c *cloudConfigCmd) Run(e *command.Env) error {
	return (&configCmd{Flags: c.Flags, namedConfig: namedConfig{string(config.Cloud), c.Name}}).Run(e)
}

type runtimeConfigCmd struct {
	capi.Flags
	typed
}

// Run prints a runtime-config.
func (c *runtimeConfigCmd) Run(e *command.Env) error {
	return (&configCmd{Flags: c.Flags, namedConfig: namedConfig{string(config.Runtime), c.Name}}).Run(e)
}

// unless checks that a config is named either so, or by its ID.
func (c namedConfig) unless(id string) error {
	if (id == "") == (c.Type == "") {
		return errors.New("give either the ID of a config, or --type with --name")
	}
	return nil
}

type configCmd struct {
	capi.Flags
	ID string `arg:"" optional:"" help:"The ID of a version, as 'configs' lists it."`
	namedConfig
}

// Run prints the last version of a config, or the one of an ID.
func (c *configCmd) Run(e *command.Env) error {
	if err := c.unless(c.ID); err != nil {
		return err
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	found := &configView{}
	if c.ID != "" {
		err = api.Call(e.Ctx, "GET", "/v1/configs/"+url.PathEscape(c.ID), nil, found)
	} else {
		found, err = c.latest(e, api)
	}
	if err != nil {
		return err
	}
	if found == nil {
		return fmt.Errorf("no config of type %q is called %q; see 'cupola deployment configs'", c.Type, c.Name)
	}
	_, err = fmt.Fprintln(e.Out, strings.TrimSuffix(found.Content, "\n"))
	return err
}

type configsCmd struct {
	capi.Flags
	Type string `help:"Only configs of this type." placeholder:"TYPE"`
	Name string `help:"Only configs of this name." placeholder:"NAME"`
	All  bool   `help:"List older versions, too."`
	JSON bool   `help:"Print JSON." name:"json"`
}

// Run lists configs. A star marks the versions that the next deploy uses.
func (c *configsCmd) Run(e *command.Env) error {
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	q := url.Values{"latest": {"true"}}
	if c.Type != "" {
		q.Set("type", c.Type)
	}
	if c.Name != "" {
		q.Set("name", c.Name)
	}
	var latest, all []configView
	if err := api.Call(e.Ctx, "GET", "/v1/configs?"+q.Encode(), nil, &latest); err != nil {
		return err
	}
	if all = latest; c.All {
		q.Set("latest", "false")
		if err := api.Call(e.Ctx, "GET", "/v1/configs?"+q.Encode(), nil, &all); err != nil {
			return err
		}
	}
	if c.JSON {
		return command.WriteJSON(e.Out, all)
	}
	marked := map[int]string{}
	for _, v := range latest {
		marked[v.ID] = "*"
	}
	w := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(w, "ID\tTYPE\tNAME\tCREATED")
	for _, v := range all {
		fmt.Fprintf(w, "%d%s\t%s\t%s\t%s\n", v.ID, marked[v.ID], v.Type, v.Name, command.When(v.CreatedAt))
	}
	return w.Flush()
}

// configText is a config's file, with ops files and variables.
type configText struct {
	Config string   `arg:"" help:"The config's file; - reads standard input." placeholder:"FILE"`
	Ops    []string `help:"Apply an ops file; may be repeated." short:"o" sep:"none" placeholder:"FILE"`
	variableFlags
}

// read is the config with its ops and values.
func (c *configText) read(ctx context.Context) (string, error) {
	f := sourceFlags{Manifest: c.Config, Ops: c.Ops, variableFlags: c.variableFlags}
	s, err := f.source(ctx)
	if err != nil {
		return "", err
	}
	if len(s.Ops) == 0 && len(s.Values) == 0 {
		return string(s.Manifest.Text), nil // with its comments
	}
	root, _, err := s.Tree()
	if err != nil {
		return "", err
	}
	text, err := tree.Write(root)
	return string(text), err
}

type updateConfigCmd struct {
	capi.Flags
	configText
	namedConfig
	WithSecrets bool `help:"Show the values of credentials."`
}

// Run shows what changes in a config, and keeps it.
func (c *updateConfigCmd) Run(e *command.Env) error {
	if c.Type == "" {
		return errors.New("give --type, like --type cloud")
	}
	text, err := c.read(e.Ctx)
	if err != nil {
		return err
	}
	found, err := config.Config{Type: config.Type(c.Type), Name: c.Name, Content: text}.Check()
	if err != nil {
		return err
	}
	if err := writeErrors(e, c.Config, found); err != nil {
		return err
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	was := ""
	now, err := c.latest(e, api)
	if err != nil {
		return err
	}
	if now != nil {
		was = now.Content
	}
	if was == text {
		_, err = fmt.Fprintf(e.Out, "Nothing changes in the %s config %s.\n", c.Type, c.Name)
		return err
	}
	if err := writeDiff(e, was, text, c.WithSecrets); err != nil {
		return err
	}
	var kept configView
	body := capi.Doc{"type": c.Type, "name": c.Name, "content": text}
	if err := api.Call(e.Ctx, "POST", "/v1/configs", body, &kept); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Updated the %s config %s; it is %d. Deployments use it from their next deploy on.\n", c.Type, c.Name, kept.ID)
	return err
}

// writeDiff prints the lines in which two texts differ, without credentials unless
// these are asked for.
func writeDiff(e *command.Env, was, is string, secrets bool) (err error) {
	lines, err := redact.Diff(was, is, secrets)
	for _, l := range lines {
		fmt.Fprintln(e.Out, l)
	}
	return err
}

type updateCloudConfigCmd struct {
	capi.Flags
	configText
	typed
	WithSecrets bool `help:"Show the values of credentials."`
}

// Run keeps a cloud-config.
func (c *updateCloudConfigCmd) Run(e *command.Env) error {
	return (&updateConfigCmd{c.Flags, c.configText, namedConfig{string(config.Cloud), c.Name}, c.WithSecrets}).Run(e)
}

type updateRuntimeConfigCmd struct {
	capi.Flags
	configText
	typed
	WithSecrets bool `help:"Show the values of credentials."`
}

// Run keeps a runtime-config.
func (c *updateRuntimeConfigCmd) Run(e *command.Env) error {
	return (&updateConfigCmd{c.Flags, c.configText, namedConfig{string(config.Runtime), c.Name}, c.WithSecrets}).Run(e)
}

type diffConfigCmd struct {
	capi.Flags
	From        string `arg:"" help:"The ID of a version, or a file."`
	To          string `arg:"" help:"The ID of another version, or a file."`
	WithSecrets bool   `help:"Show the values of credentials."`
}

// Run compares two configs: it exits with 2 when they differ.
func (c *diffConfigCmd) Run(e *command.Env) error {
	var texts [2]string
	for i, what := range []string{c.From, c.To} {
		text, err := c.text(e, what)
		if err != nil {
			return err
		}
		texts[i] = text
	}
	lines, err := redact.Diff(texts[0], texts[1], c.WithSecrets)
	if err != nil {
		return err
	}
	if len(lines) == 0 {
		_, err = fmt.Fprintln(e.Out, "The configs are the same.")
		return err
	}
	for _, l := range lines {
		fmt.Fprintln(e.Out, l)
	}
	return command.ExitCode(2)
}

func (c *diffConfigCmd) text(e *command.Env, what string) (string, error) {
	if strings.Trim(what, "0123456789") != "" {
		file, err := readSource(e.Ctx, what)
		return string(file.Text), err
	}
	var v configView
	err := get(e, &c.Flags, "/v1/configs/"+what, &v)
	return v.Content, err
}

type deleteConfigCmd struct {
	capi.Flags
	ID string `arg:"" optional:"" help:"The ID of one version; without it, all versions of --type and --name are deleted."`
	namedConfig
}

// Run deletes a config.
func (c *deleteConfigCmd) Run(e *command.Env) error {
	if err := c.unless(c.ID); err != nil {
		return err
	}
	api, err := c.Login(e.Ctx)
	if err != nil {
		return err
	}
	path, what := c.query(), c.Type+" config "+c.Name
	if c.ID != "" {
		path, what = "/v1/configs/"+url.PathEscape(c.ID), "config "+c.ID
	}
	if err := api.Call(e.Ctx, "DELETE", path, nil, nil); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.Out, "Deleted the %s. Deployments use it until their next deploy.\n", what)
	return err
}

// shownWith returns a manifest with what configs add to it.
func shownWith(name, text string, configs config.Set) (string, error) {
	root, err := bosh.Source{Manifest: bosh.File{Name: name, Text: []byte(text)}}.WithOps()
	if err != nil {
		return "", err
	}
	if root, err = configs.Shown(root); err != nil {
		return "", err
	}
	out, err := tree.Write(root)
	return string(out), err
}

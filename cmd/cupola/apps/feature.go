package apps

import (
	"context"
	"fmt"
	"net/url"
	"text/tabwriter"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
)

// appFlags name an app.
type appFlags struct {
	capi.Flags
	capi.Place
	App string `arg:"" help:"The app's name."`
}

// find gives the client and the path of the app's features in the API.
func (f *appFlags) find(ctx context.Context) (c *capi.Client, path string, err error) {
	if c, err = f.Login(ctx); err != nil {
		return nil, "", err
	}
	guid, err := f.Find(ctx, c, "app", "apps", f.App)
	return c, "/v3/apps/" + guid + "/features", err
}

// feature is an app feature as the API shows it.
type feature struct {
	Name, Description string
	Enabled           bool
}

func (f feature) state() string {
	if f.Enabled {
		return "enabled"
	}
	return "disabled"
}

func writeFeatures(e *command.Env, all ...feature) error {
	t := tabwriter.NewWriter(e.Out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "FEATURE\tSTATE\tWHAT IT DOES")
	for _, f := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, f.state(), f.Description)
	}
	return t.Flush()
}

// FeaturesCmd is cupola app-features.
type FeaturesCmd struct{ appFlags }

// Run lists an app's features.
func (a *FeaturesCmd) Run(e *command.Env) error {
	c, path, err := a.find(e.Ctx)
	if err != nil {
		return err
	}
	all, err := capi.List[feature](e.Ctx, c, path)
	if err != nil {
		return err
	}
	return writeFeatures(e, all...)
}

// FeatureCmd is cupola app-feature.
type FeatureCmd struct {
	appFlags
	Feature string `arg:"" help:"The feature's name."`
}

// Run shows one feature of an app.
func (a *FeatureCmd) Run(e *command.Env) error {
	c, path, err := a.find(e.Ctx)
	if err != nil {
		return err
	}
	var f feature
	if err := c.Call(e.Ctx, "GET", path+"/"+url.PathEscape(a.Feature), nil, &f); err != nil {
		return fmt.Errorf("%s: %w", a.Feature, err)
	}
	return writeFeatures(e, f)
}

// set turns a feature of an app on or off.
func (a *FeatureCmd) set(e *command.Env, on bool) error {
	c, path, err := a.find(e.Ctx)
	if err != nil {
		return err
	}
	var f feature
	if err := c.Call(e.Ctx, "PATCH", path+"/"+url.PathEscape(a.Feature), capi.Doc{"enabled": on}, &f); err != nil {
		return fmt.Errorf("%s: %w", a.Feature, err)
	}
	since := "What runs has it from its next restart on."
	if f.Name == "ssh" || f.Name == "revisions" {
		since = "That holds at once."
	}
	fmt.Fprintf(e.Out, "%s is %s for %s. %s\n", f.Name, f.state(), a.App, since)
	return nil
}

// EnableFeatureCmd is cupola enable-app-feature.
type EnableFeatureCmd struct{ FeatureCmd }

// Run turns a feature on.
func (a *EnableFeatureCmd) Run(e *command.Env) error { return a.set(e, true) }

// DisableFeatureCmd is cupola disable-app-feature.
type DisableFeatureCmd struct{ FeatureCmd }

// Run turns a feature off.
func (a *DisableFeatureCmd) Run(e *command.Env) error { return a.set(e, false) }

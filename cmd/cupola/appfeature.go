package main

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"text/tabwriter"
)

// appFlags name an app.
type appFlags struct {
	apiFlags
	App   string `arg:"" help:"The app's name."`
	Org   string `help:"The app's org, if the app's name is not unique." short:"o"`
	Space string `help:"The app's space, if the app's name is not unique." short:"s"`
}

// find gives the client and the path of the app in the API.
func (f *appFlags) find(ctx context.Context) (c *client, path string, err error) {
	if c, err = f.login(ctx); err != nil {
		return nil, "", err
	}
	query := url.Values{"names": {f.App}}
	for _, of := range []struct{ what, kind, filter, name string }{{"org", "organizations", "organization_guids", f.Org}, {"space", "spaces", "space_guids", f.Space}} {
		if of.name == "" {
			continue
		}
		found, err := list[struct{ GUID string }](ctx, c, "/v3/"+of.kind+"?"+filter("names", of.name))
		if err != nil {
			return nil, "", err
		}
		var guids []string
		for _, one := range found {
			guids = append(guids, one.GUID)
		}
		if len(guids) == 0 {
			return nil, "", fmt.Errorf("there is no %s %s", of.what, of.name)
		}
		query.Set(of.filter, strings.Join(guids, ","))
	}
	apps, err := list[struct{ GUID string }](ctx, c, "/v3/apps?"+query.Encode())
	switch {
	case err != nil:
		return nil, "", err
	case len(apps) == 0:
		return nil, "", fmt.Errorf("there is no app %s", f.App)
	case len(apps) > 1:
		return nil, "", fmt.Errorf("there are %d apps named %s: give --org and --space", len(apps), f.App)
	}
	return c, "/v3/apps/" + apps[0].GUID + "/features", nil
}

// feature is an app feature as the API tells it.
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

func writeFeatures(e *env, all ...feature) error {
	t := tabwriter.NewWriter(e.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "FEATURE\tSTATE\tWHAT IT DOES")
	for _, f := range all {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, f.state(), f.Description)
	}
	return t.Flush()
}

type appFeaturesCmd struct{ appFlags }

// Run lists an app's features.
func (a *appFeaturesCmd) Run(e *env) error {
	c, path, err := a.find(e.ctx)
	if err != nil {
		return err
	}
	all, err := list[feature](e.ctx, c, path)
	if err != nil {
		return err
	}
	return writeFeatures(e, all...)
}

type appFeatureCmd struct {
	appFlags
	Feature string `arg:"" help:"The feature's name."`
}

// Run shows one feature of an app.
func (a *appFeatureCmd) Run(e *env) error {
	c, path, err := a.find(e.ctx)
	if err != nil {
		return err
	}
	var f feature
	if err := c.call(e.ctx, "GET", path+"/"+url.PathEscape(a.Feature), nil, &f); err != nil {
		return fmt.Errorf("%s: %w", a.Feature, err)
	}
	return writeFeatures(e, f)
}

// set turns a feature of an app on or off.
func (a *appFeatureCmd) set(e *env, on bool) error {
	c, path, err := a.find(e.ctx)
	if err != nil {
		return err
	}
	var f feature
	if err := c.call(e.ctx, "PATCH", path+"/"+url.PathEscape(a.Feature), doc{"enabled": on}, &f); err != nil {
		return fmt.Errorf("%s: %w", a.Feature, err)
	}
	since := "What runs has it from its next restart on."
	if f.Name == "ssh" || f.Name == "revisions" {
		since = "That holds at once."
	}
	fmt.Fprintf(e.out, "%s is %s for %s. %s\n", f.Name, f.state(), a.App, since)
	return nil
}

type enableAppFeatureCmd struct{ appFeatureCmd }

// Run turns a feature on.
func (a *enableAppFeatureCmd) Run(e *env) error { return a.set(e, true) }

type disableAppFeatureCmd struct{ appFeatureCmd }

// Run turns a feature off.
func (a *disableAppFeatureCmd) Run(e *env) error { return a.set(e, false) }

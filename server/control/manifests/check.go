package manifests

import (
	"cupola/server/control"
	"cupola/server/control/apps"
	"cupola/server/control/routes"
	"cupola/server/manifest"
	"cupola/store/cf"
)

// check refuses a manifest for what Cloud Controller's message finds before it looks at
// apps, in its words and order: credentials, lifecycles that are disabled, and options of
// routes (CC: AppManifestMessage).
func check(c *control.Session, m *manifest.Manifest) error {
	rules, err := routes.Rules(c)
	if err != nil {
		return err
	}
	var faults manifest.Invalid
	for _, app := range m.Apps {
		found, err := lifecycleFaults(c, app)
		if err != nil {
			return err
		}
		for _, route := range app.Routes {
			found = append(found, rules.ManifestFaults(route)...)
		}
		for _, fault := range found {
			faults = append(faults, "For application '"+app.Name+"': "+fault)
		}
	}
	if faults == nil {
		return nil
	}
	return invalid(faults)
}

func lifecycleFaults(c *control.Session, app manifest.App) (faults []string, err error) {
	if l := lifecycleOf(&app); l != nil {
		if err := l.CheckCredentials(); err != nil {
			faults = append(faults, err.Error())
		}
	}
	for _, flag := range flagsOf(app) {
		err := c.Feature(flag)
		if err != nil && !control.IsKind(err, cf.FeatureDisabled) {
			return nil, err
		}
		if err != nil {
			faults = append(faults, err.Error())
		}
	}
	return faults, nil
}

// flagsOf are the feature flags that the lifecycle of an entry needs.
func flagsOf(app manifest.App) (flags []string) {
	if app.Docker {
		flags = append(flags, apps.DockerLifecycle)
	}
	if app.Lifecycle != nil && *app.Lifecycle == manifest.LifecycleCNB {
		flags = append(flags, "diego_cnb")
	}
	return flags
}

package api

import (
	"slices"
	"strings"

	"cupola/store/cf"
)

const jobApplyManifest = "space.apply_manifest"

// manifestServices names the service instances that an app is bound to.
func (c *call) manifestServices(m map[string]any, app *cf.App) error {
	bound, err := c.Tx.AppServices(app.GUID)
	if err != nil {
		return err
	}
	var names []string
	for _, s := range bound[app.GUID] {
		names = append(names, s.Instance.Name)
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	if names = slices.Compact(names); names != nil {
		m["services"] = anyList(names)
	}
	return nil
}

package director

import (
	"context"
	"maps"

	"cupola/server/bosh"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
	"cupola/store/cf"
)

// Made is what a deploy makes of a manifest.
type Made struct {
	*bosh.Deployment
	Desired   []byte                     // the manifest with all values in it
	Variables map[string]variables.Value // those that it declares
	Given     interpolate.Values         // the others that it uses
}

// Make does what a deploy does before anything is changed, and keeps nothing of
// it. The variables of a deployment that is here are used, those that exist
// elsewhere before them.
func (l *Loop) Make(ctx context.Context, o Order, existing map[string]variables.Value) (*Made, error) {
	root, err := tree.LoadBOSH([]byte(o.Manifest))
	if err != nil {
		return nil, err
	}
	m, _ := manifest.Decode(root)
	d := &deploy{task: &cf.BOSHTask{DeploymentName: m.Name}, order: o}
	if err := l.Store.Read(ctx, d.loadVariables); err != nil {
		return nil, err
	}
	maps.Copy(d.existing, existing)
	if err := d.fill(ctx, root); err != nil {
		return nil, err
	}
	made := &Made{Variables: d.made, Given: d.given}
	if made.Deployment, err = l.Resolve(ctx, Request{Manifest: d.m, Say: func(string, string) {}, Step: func(string, string) func(error) { return func(error) {} }, Shared: l.shared(ctx)}); err != nil {
		return nil, err
	}
	made.Desired, err = tree.Write(d.full)
	return made, err
}

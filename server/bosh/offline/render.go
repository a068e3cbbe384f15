package offline

import (
	"context"
	"fmt"
	"maps"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh"
	"cupola/server/bosh/erb"
	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
	"cupola/server/kube"
)

// Render makes a deployment of a manifest, to which its ops were applied.
func (l *Library) Render(ctx context.Context, root *yaml.Node, f bosh.Filling, ruby erb.Ruby) (*Rendered, error) {
	withOps, err := tree.Write(root)
	if err != nil {
		return nil, err
	}
	f.Existing = maps.Clone(f.Existing)
	if f.Existing == nil {
		f.Existing = map[string]variables.Value{}
	}
	for name, v := range f.Given { // of those that the manifest declares, too
		f.Existing[name] = variables.Value{Fields: bosh.FieldsOf(v)}
	}
	filled, err := f.Fill(ctx, root)
	if err != nil {
		return nil, err
	}
	d, err := bosh.Resolver{Job: l.Job, Patched: l.Patched, Ruby: ruby}.Resolve(ctx, filled.Manifest)
	if err != nil {
		return nil, err
	}
	desired, err := tree.Write(filled.Tree)
	if err != nil {
		return nil, err
	}
	in := kube.Input{Deployment: d, WithOps: withOps, Desired: desired}
	in.Variables, err = kube.Variables(filled.Made, f.Given)
	return &Rendered{in}, err
}

// Rendered is a deployment that was rendered.
type Rendered struct{ kube.Input }

// Files calls use with each rendered file, by the path GROUP/INDEX/JOB/FILE.
func (r *Rendered) Files(use func(path string, f bosh.JobFile) error) error {
	for _, g := range r.Groups {
		for _, i := range g.Instances {
			for n, j := range i.Jobs {
				for _, f := range j.Files {
					if err := use(fmt.Sprintf("%s/%d/%s/%s", g.Name, i.Index, g.Jobs[n].Name, f.Path), f); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

package resolve

import (
	"context"
	"strings"

	"cupola/server/bosh/director"
	"cupola/server/bosh/variables"
	"cupola/server/kube"
)

// Kube writes a deployment, of which the loop makes all, as Kubernetes objects. decode
// decodes the request into a kube.RenderRequest.
func Kube(ctx context.Context, loop *director.Loop, decode func(request any) error) (*kube.Rendered, error) {
	var r kube.RenderRequest
	if err := decode(&r); err != nil {
		return nil, err
	}
	existing := map[string]variables.Value{}
	for _, v := range r.Existing {
		existing[v.Name] = variables.Value{Fields: v.Fields, Made: v.Made}
	}
	made, err := loop.Make(ctx, director.Order{Manifest: r.Manifest, Values: r.Values, Lenient: r.Lenient, Rotate: r.Rotate}, existing)
	if err != nil {
		return nil, err
	}
	in := kube.Input{Deployment: made.Deployment, WithOps: []byte(r.Manifest), Desired: made.Desired}
	if in.Variables, err = kube.Variables(made.Variables, made.Given); err != nil {
		return nil, err
	}
	o := r.Options
	o.Lenient = r.Lenient
	objects, warnings, err := kube.Render(in, o)
	if err != nil {
		return nil, err
	}
	var text strings.Builder
	if err := kube.Write(&text, objects); err != nil {
		return nil, err
	}
	return &kube.Rendered{Objects: text.String(), Warnings: warnings}, nil
}

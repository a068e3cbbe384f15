package deployment

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"cupola/cmd/cupola/capi"
	"cupola/cmd/cupola/command"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/manifest"
	"cupola/server/kube"
)

// kubeFlags say how a deployment is written for Kubernetes.
type kubeFlags struct {
	Namespace     string            `help:"Namespace of the objects; by default they have none." short:"n" placeholder:"NAME"`
	StsVersion    int               `help:"Number in the names of StatefulSets; another number creates new pods next to the existing ones." default:"1" placeholder:"N"`
	ZoneLabel     string            `help:"Label of nodes that names their zone." default:"topology.kubernetes.io/zone" placeholder:"LABEL"`
	Zone          map[string]string `help:"Zone of an AZ, if their names differ." placeholder:"AZ=ZONE"`
	UlimitWrapper bool              `help:"Set limits on open files and core files by running processes through a shell."`
	HostPaths     bool              `help:"Mount unrestricted_volumes outside of /var/vcap from the node. By default they are empty directories of the pod."`
}

func (f *kubeFlags) options() kube.Options {
	return kube.Options{Namespace: f.Namespace, StsVersion: f.StsVersion, ZoneLabel: f.ZoneLabel, Zones: f.Zone, Ulimits: f.UlimitWrapper, HostPaths: f.HostPaths}
}

type renderCmd struct {
	capi.Flags
	sourceFlags
	offlineFlags
	kubeFlags
	To          string `help:"The output format: Kubernetes objects, or without a daemon the jobs' rendered files, GROUP/INDEX/JOB/FILE." enum:"kubernetes,files" default:"kubernetes"`
	Output      string `help:"Where to write: a file, a directory (one file per object), or - for standard output." default:"-" placeholder:"PATH"`
	Phase       string `help:"How far an update goes: to its canaries, or to all instances." enum:"canary,full" default:"full"`
	WithSecrets bool   `help:"Include the values of Secrets."`
	Lenient     bool   `help:"Report faults that BOSH accepts, and what Kubernetes cannot do, as warnings."`
}

// Run writes the objects of a manifest. What was written to the same place
// before says which versions of Secrets there are.
func (c *renderCmd) Run(e *command.Env) error {
	if c.To == "files" {
		return c.files(e)
	}
	written, err := writtenAt(c.Output)
	if err != nil {
		return err
	}
	o := c.options()
	o.Phase, o.WithSecrets, o.Known = kube.Phase(c.Phase), c.WithSecrets, kube.KnownOf(written)
	if c.isSet() {
		return c.here(e, o, written)
	}
	r := renderer{env: e, source: &c.sourceFlags, lenient: c.Lenient}
	if err := r.read(); err != nil {
		return err
	}
	if r.api, err = c.Login(e.Ctx); err != nil {
		return err
	}
	objects, err := r.render(e.Ctx, o, nil)
	if err != nil {
		return err
	}
	h := kube.Header{Version: command.BuildVersion(), Source: c.Manifest, SHA256: r.sha256, Target: c.Output, Secrets: c.WithSecrets}
	return WriteObjects(e, c.Output, h, objects)
}

// here writes the objects without a daemon. Variables that the last output has keep
// their values.
func (c *renderCmd) here(e *command.Env, o kube.Options, written []kube.Object) error {
	l := localRender{source: &c.sourceFlags, offline: &c.offlineFlags, lenient: c.Lenient, known: written}
	made, text, err := l.run(e)
	if err != nil {
		return err
	}
	o.Lenient = c.Lenient
	objects, warnings, err := kube.Render(made.Input, o)
	if err != nil {
		return err
	}
	writeWarnings(e, warnings)
	sum := sha256.Sum256(text)
	h := kube.Header{Version: command.BuildVersion(), Source: c.Manifest, SHA256: hex.EncodeToString(sum[:]), Target: c.Output, Secrets: c.WithSecrets}
	return WriteObjects(e, c.Output, h, objects)
}

// files writes the rendered files of all jobs.
func (c *renderCmd) files(e *command.Env) error {
	switch {
	case c.Output == "-":
		return errors.New("--to files needs a directory: give --output")
	case !c.WithSecrets:
		return errors.New("rendered files hold secrets: give --with-secrets")
	}
	l := localRender{source: &c.sourceFlags, offline: &c.offlineFlags, lenient: c.Lenient}
	made, _, err := l.run(e)
	if err != nil {
		return err
	}
	return writeFiles(e, c.Output, made)
}

func writeWarnings(e *command.Env, warnings []kube.Warning) {
	for _, w := range warnings {
		fmt.Fprintf(e.Err, "%-7s %s\n", manifest.Warning, command.Printable(w.String()))
	}
}

// renderer asks the daemon for the Kubernetes objects of a manifest.
type renderer struct {
	env     *command.Env
	api     *capi.Client
	source  *sourceFlags
	lenient bool
	rotate  []string // variables to generate again

	manifest []byte // with its ops applied
	values   interpolate.Values
	name     string // of the deployment
	sha256   string // of the manifest's file
}

// read reads the manifest, and tells what is wrong with it.
func (r *renderer) read() error {
	s, err := r.source.source(r.env.Ctx)
	if err != nil {
		return err
	}
	text, found, err := deployable(s, nil, manifest.Options{Lenient: r.lenient})
	if err != nil {
		return err
	}
	if err := writeErrors(r.env, r.source.Manifest, found); err != nil {
		return err
	}
	m, _ := manifest.Parse(text)
	sum := sha256.Sum256(s.Manifest.Text)
	r.manifest, r.values, r.name, r.sha256 = text, s.Values, m.Name, hex.EncodeToString(sum[:])
	return nil
}

// render asks for the objects, and tells what they are warned of.
func (r *renderer) render(ctx context.Context, o kube.Options, existing []kube.Variable) ([]kube.Object, error) {
	var answer kube.Rendered
	body := kube.RenderRequest{Manifest: string(r.manifest), Values: r.values, Lenient: r.lenient, Options: o, Existing: existing, Rotate: r.rotate}
	if err := r.api.Call(ctx, "POST", "/v1/deployments/render", body, &answer); err != nil {
		return nil, err
	}
	writeWarnings(r.env, answer.Warnings)
	return kube.Read(strings.NewReader(answer.Objects))
}

// writeErrors reports what is wrong with a manifest, all of it to standard error:
// what is rendered goes to standard output.
func writeErrors(e *command.Env, name string, found manifest.Findings) error {
	if len(found) == 0 {
		return nil
	}
	if err := writeFindings(&command.Env{Out: e.Err, Err: e.Err}, name, found); err != nil {
		return err
	}
	if found.Count(manifest.Error) > 0 {
		return command.ExitCode(1)
	}
	return nil
}

// WriteObjects writes objects to a file, to a file each in a directory, or to
// standard output.
func WriteObjects(e *command.Env, to string, h kube.Header, all []kube.Object) error {
	if to == "-" {
		return writeYAML(e.Out, h, all)
	}
	if info, err := os.Stat(to); !strings.HasSuffix(to, "/") && (err != nil || !info.IsDir()) {
		return writeRendered(to, h, all)
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, o := range all {
		if err := writeRendered(filepath.Join(to, strings.ToLower(o.Kind())+"-"+o.Name()+".yaml"), h, []kube.Object{o}); err != nil {
			return err
		}
	}
	return nil
}

// writeRendered writes a file whole or not at all. One with values of Secrets is its
// owner's alone.
func writeRendered(name string, h kube.Header, all []kube.Object) error {
	if _, err := command.WriteFile(name, func(w io.Writer) error { return writeYAML(w, h, all) }); err != nil || h.Secrets {
		return err
	}
	return os.Chmod(name, 0o644)
}

func writeYAML(w io.Writer, h kube.Header, all []kube.Object) error {
	if _, err := io.WriteString(w, h.String()); err != nil {
		return err
	}
	return kube.Write(w, all)
}

// writtenAt are the Secrets in what was written to a place before.
func writtenAt(place string) (all []kube.Object, err error) {
	files := []string{place}
	info, err := os.Stat(place)
	switch {
	case place == "-" || errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case info.IsDir():
		if files, err = filepath.Glob(filepath.Join(place, "secret-*.yaml")); err != nil {
			return nil, err
		}
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		objects, err := kube.Read(bytes.NewReader(text))
		if err != nil {
			return nil, fmt.Errorf("cannot replace %s: %w", name, err)
		}
		all = append(all, objects...)
	}
	return all, nil
}

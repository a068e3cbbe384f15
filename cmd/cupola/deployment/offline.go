package deployment

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/cmd/cupola/command"
	"cupola/server/bosh"
	"cupola/server/bosh/config"
	"cupola/server/bosh/linediff"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/offline"
	"cupola/server/bosh/redact"
	"cupola/server/bosh/tree"
	"cupola/server/bosh/variables"
	"cupola/server/kube"
)

// offlineFlags render on this machine.
type offlineFlags struct {
	configFlags
	Offline   bool     `help:"Render here, without a daemon and without root. Templates run with the Ruby in PATH, or in a container of podman or docker; without, they must be simple."`
	Release   []string `help:"Take a release from its tarball or directory, without a daemon; may be repeated. Others are read from their images or URLs." sep:"none" placeholder:"PATH"`
	RubyImage string   `help:"The image with Ruby for podman or docker." default:"docker.io/library/ruby:3.3-slim" placeholder:"IMAGE"`
}

// isSet reports whether to render without a daemon.
func (f *offlineFlags) isSet() bool {
	return f.Offline || len(f.Release)+len(f.CloudConfig)+len(f.RuntimeConfig) > 0
}

// localRender renders a manifest here.
type localRender struct {
	source  *sourceFlags
	offline *offlineFlags
	lenient bool
	known   []kube.Object // from the last output: it has the variables of then
}

// run renders, and returns what it rendered with the manifest's text.
func (l *localRender) run(e *command.Env) (*offline.Rendered, []byte, error) {
	s, root, configs, err := l.read(e)
	if err != nil {
		return nil, nil, err
	}
	library, err := offline.Open(e.Ctx, l.offline.Release)
	if err != nil {
		return nil, nil, err
	}
	defer library.Close()
	library.Say = func(what string) { fmt.Fprintln(e.Err, what+" …") }
	f := bosh.Filling{Configs: configs, Given: s.Values, Existing: variablesIn(l.known), Lenient: l.lenient}
	made, err := library.Render(e.Ctx, root, f, offline.Ruby(l.offline.RubyImage))
	return made, s.Manifest.Text, err
}

// read reads the manifest and the configs, and reports what is wrong with them.
func (l *localRender) read(e *command.Env) (s bosh.Source, root *yaml.Node, configs config.Set, err error) {
	if s, err = l.source.source(e.Ctx); err != nil {
		return s, nil, nil, err
	}
	if configs, err = l.offline.configs(e.Ctx); err != nil {
		return s, nil, nil, err
	}
	_, found, err := deployable(s, configs, manifest.Options{Lenient: l.lenient})
	if err == nil {
		err = writeErrors(e, l.source.Manifest, found)
	}
	if err != nil {
		return s, nil, nil, err
	}
	root, err = s.WithOps()
	return s, root, configs, err
}

// variablesIn are the variables in objects that were written with their secrets.
func variablesIn(objects []kube.Object) map[string]variables.Value {
	all := map[string]variables.Value{}
	for _, o := range objects {
		if v, ok := kube.VariableOf(o); ok && len(v.Fields) > 0 {
			all[v.Name] = variables.Value{Fields: v.Fields, Made: v.Made}
		}
	}
	return all
}

// writeFiles writes rendered files to a directory, for their owner alone.
func writeFiles(e *command.Env, to string, made *offline.Rendered) error {
	count := 0
	err := made.Files(func(path string, f bosh.JobFile) error {
		if !filepath.IsLocal(path) {
			return fmt.Errorf("the file %q would be outside of %s", path, to)
		}
		count++
		name := filepath.Join(to, path)
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			return err
		}
		_, err := command.WriteFile(name, func(w io.Writer) error {
			_, err := w.Write(f.Content)
			return err
		})
		return err
	})
	if err == nil {
		_, err = fmt.Fprintf(e.Out, "Wrote %s to %s.\n", command.Counted(count, "file"), to)
	}
	return err
}

// against compares a manifest with another one, or its objects with those that were
// rendered before.
func (c *diffCmd) against(e *command.Env) (changed bool, err error) {
	objects, err := objectsAt(c.Against)
	if err != nil {
		return false, fmt.Errorf("--against: %w", err)
	}
	l := &localRender{source: &c.sourceFlags, offline: &c.offlineFlags, lenient: true, known: objects}
	var lines []string
	if objects == nil {
		lines, err = l.manifests(e, c.Against, c.WithSecrets)
	} else {
		lines, err = l.objects(e, c.options(), c.WithSecrets)
	}
	if err != nil {
		return false, err
	}
	if len(lines) == 0 {
		_, err = fmt.Fprintln(e.Out, "Nothing changes.")
		return false, err
	}
	for _, line := range lines {
		fmt.Fprintln(e.Out, line)
	}
	return true, nil
}

// manifests compares another manifest with this one.
func (l *localRender) manifests(e *command.Env, other string, secrets bool) ([]string, error) {
	file, err := readSource(e.Ctx, other)
	if err != nil {
		return nil, err
	}
	s, root, configs, err := l.read(e)
	if err != nil {
		return nil, err
	}
	text, err := tree.Write(root)
	if err != nil {
		return nil, err
	}
	was, err := shownWith(file.Name, string(file.Text), configs)
	if err != nil {
		return nil, err
	}
	is, err := shownWith(s.Manifest.Name, string(text), configs)
	if err != nil {
		return nil, err
	}
	return redact.Diff(was, is, secrets)
}

// objects compares the last output with the objects of now. Where that has secrets,
// only names are shown, unless secrets are asked for.
func (l *localRender) objects(e *command.Env, o kube.Options, secrets bool) ([]string, error) {
	made, _, err := l.run(e)
	if err != nil {
		return nil, err
	}
	o.Lenient, o.WithSecrets, o.Known = true, len(variablesIn(l.known)) > 0, kube.KnownOf(l.known)
	now, _, err := kube.Render(made.Input, o)
	if err != nil {
		return nil, err
	}
	was, is := map[string]string{}, map[string]string{}
	for _, side := range []struct {
		objects []kube.Object
		texts   map[string]string
	}{{l.known, was}, {now, is}} {
		for _, object := range side.objects {
			var text strings.Builder
			if err := kube.Write(&text, []kube.Object{object}); err != nil {
				return nil, err
			}
			side.texts[object.Kind()+" "+object.Name()] = text.String()
		}
	}
	return objectLines(was, is, secrets || !o.WithSecrets)
}

// objectLines are the objects that differ, with their lines if they may be shown.
func objectLines(was, is map[string]string, shown bool) (lines []string, err error) {
	names := map[string]bool{}
	for _, texts := range []map[string]string{was, is} {
		for name := range texts {
			names[name] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		sign := "~ "
		switch {
		case was[name] == is[name]:
			continue
		case was[name] == "":
			sign = "+ "
		case is[name] == "":
			sign = "- "
		}
		lines = append(lines, sign+name)
		if shown {
			for _, line := range linediff.Lines(was[name], is[name]) {
				lines = append(lines, "    "+line)
			}
		}
	}
	return lines, nil
}

// objectsAt are the objects that were rendered to a file or a directory; nil: there is
// a manifest.
func objectsAt(place string) (all []kube.Object, err error) {
	info, err := os.Stat(place)
	if err != nil {
		return nil, err
	}
	files := []string{place}
	if info.IsDir() {
		if files, err = filepath.Glob(filepath.Join(place, "*.yaml")); err == nil && len(files) == 0 {
			err = fmt.Errorf("no object was rendered to %s", place)
		}
		if err != nil {
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
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if !info.IsDir() && (len(objects) == 0 || objects[0].Kind() == "") {
			return nil, nil
		}
		all = append(all, objects...)
	}
	return all, nil
}

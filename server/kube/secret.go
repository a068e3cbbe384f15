package kube

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/server/bosh"
	"cupola/server/bosh/bpm"
	"cupola/server/bosh/manifest"
	"cupola/server/bosh/tree"
)

// placeholder replaces the hidden values of a Secret.
const placeholder = "REPLACE"

// manifestFile is the key of a manifest in its Secret.
const manifestFile = "manifest.yaml"

// secret is a Secret with its values, or placeholders for them.
func (r *rendering) secret(meta doc, kind string, values map[string][]byte) Object {
	o := Object{"apiVersion": "v1", "kind": "Secret", "metadata": meta, "type": kind}
	data := doc{}
	for key, value := range values {
		data[key] = placeholder
		if r.WithSecrets {
			data[key] = base64.StdEncoding.EncodeToString(value)
		}
	}
	switch {
	case r.WithSecrets:
		o["data"] = data
	case kind == dockerConfig: // Kubernetes looks into it
		o["stringData"] = doc{dockerConfigFile: `{"auths":{}}`}
	default:
		o["stringData"] = data
	}
	return o
}

const (
	opaque           = "Opaque"
	dockerConfig     = "kubernetes.io/dockerconfigjson"
	dockerConfigFile = ".dockerconfigjson"
)

// secrets adds the Secrets of the deployment, and those of its groups that only
// tell what they were made of.
func (r *rendering) secrets() error {
	if err := r.variables(); err != nil {
		return err
	}
	r.registries()
	if len(r.WithOps) > 0 {
		r.add(r.secret(r.meta(r.names.WithOps(), "the manifest with its ops applied"), opaque, map[string][]byte{manifestFile: r.WithOps}))
	}
	if len(r.Desired) == 0 {
		return nil
	}
	r.versioned(r.names.DesiredManifest, "the manifest with all values", map[string][]byte{manifestFile: r.Desired})
	root, err := tree.Load(r.Desired)
	if err != nil {
		return fmt.Errorf("the desired manifest: %w", err)
	}
	for i := range r.Groups {
		g := &r.Groups[i]
		resolved, err := resolvedGroup(root, r.Name, g.Name)
		if err != nil {
			return err
		}
		r.versioned(func(v int) string { return r.names.Resolved(g.Name, v) }, "properties of instance group "+g.Name, map[string][]byte{"properties.yaml": resolved})
		processes, err := processesOf(g.Jobs)
		if err != nil {
			return err
		}
		r.versioned(func(v int) string { return r.names.BPM(g.Name, v) }, "processes of instance group "+g.Name, map[string][]byte{"bpm.yaml": processes})
	}
	return nil
}

// resolvedGroup is the manifest of one group alone.
func resolvedGroup(root *yaml.Node, deployment, name string) ([]byte, error) {
	groups := tree.Get(root, "instance_groups")
	if groups == nil {
		return nil, errors.New("the desired manifest has no instance groups")
	}
	for _, g := range groups.Content {
		if n := tree.Get(g, "name"); n != nil && n.Value == name {
			return yaml.Marshal(doc{"name": deployment, "instance_groups": []*yaml.Node{g}})
		}
	}
	return nil, fmt.Errorf("the desired manifest has no instance group %q", name)
}

// variables adds a Secret for each variable.
func (r *rendering) variables() error {
	var names []string
	for _, v := range r.Variables {
		names = append(names, v.Name)
	}
	keys := manifest.VariableKeys(names)
	for _, v := range r.Variables {
		name := r.names.Variable(keys[v.Name])
		if v.Implicit {
			name = r.names.ImplicitVariable(keys[v.Name])
		}
		meta := r.meta(name, "variable "+v.Name)
		meta["annotations"].(doc)[variableKey] = v.Name
		if v.Made != "" {
			meta["annotations"].(doc)[madeKey] = v.Made
		}
		values := map[string][]byte{}
		for field, value := range v.Fields {
			values[field] = []byte(value)
		}
		if len(values) == 0 {
			return fmt.Errorf("variable %q has no value", v.Name)
		}
		r.add(r.secret(meta, opaque, values))
	}
	return nil
}

// registries adds the credentials of releases.
func (r *rendering) registries() {
	done := map[string]bool{}
	for _, g := range r.Groups {
		for _, j := range g.Jobs {
			if j.Image.Credentials == (manifest.Credentials{}) || done[j.Release] {
				continue
			}
			done[j.Release] = true
			r.add(r.secret(r.meta(r.names.Registry(j.Release), "registry of release "+j.Release), dockerConfig,
				map[string][]byte{dockerConfigFile: dockerAuth(j.Image)}))
		}
	}
}

// dockerAuth is docker's config.json with the credentials of an image's registry.
func dockerAuth(i manifest.Image) []byte {
	host, _, _ := strings.Cut(i.Reference, "/")
	if host == "docker.io" || host == "index.docker.io" {
		host = "https://index.docker.io/v1/" // kubelet's name of it
	}
	c := i.Credentials
	auth := base64.StdEncoding.EncodeToString([]byte(c.Username + ":" + c.Password))
	text, _ := json.Marshal(doc{"auths": doc{host: doc{"username": c.Username, "password": c.Password, "auth": auth}}}) // strings alone
	return text
}

// processesOf are the processes of jobs, as bpm.yml has them.
func processesOf(jobs []bosh.Job) ([]byte, error) {
	all := doc{}
	for _, j := range jobs {
		processes := []bpm.Process{}
		for _, p := range j.Processes {
			processes = append(processes, p.Process)
		}
		all[j.Name] = doc{"processes": processes}
	}
	return yaml.Marshal(doc{"jobs": all})
}

package kube

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
)

// The Secrets of an instance: its environment, that of its other processes, its files, and the
// credentials of its image's registry.
const (
	envPart   = "env"
	filesPart = "files"
	pullPart  = "pull"
)

// secretName names a Secret of an instance.
func secretName(guid, part string) string { return guid + "-" + part }

// PullSecret names the Secret with the credentials of an image.
func PullSecret(guid string) string { return secretName(guid, pullPart) }

// SecretNames are those that an instance may have.
func SecretNames(r Record) (names []string) {
	for n := range max(len(r.Sources), 1) {
		names = append(names, secretName(r.Container.GUID, envPartOf(n)))
	}
	if r.Files != nil {
		names = append(names, secretName(r.Container.GUID, filesPart))
	}
	if r.Pulls {
		names = append(names, secretName(r.Container.GUID, pullPart))
	}
	return names
}

// SecretGUID is the GUID of the instance that a Secret is of, by its name.
func SecretGUID(name string) string {
	for _, part := range []string{envPart, filesPart, pullPart} {
		if n := strings.LastIndex(name, "-"+part); n >= 0 {
			return name[:n]
		}
	}
	return name
}

// envPartOf names the environment of the nth process.
func envPartOf(n int) string {
	if n == 0 {
		return envPart
	}
	return envPart + "-" + strconv.Itoa(n)
}

func (p *instancePod) secret(part, kind string, values map[string][]byte) {
	data := doc{}
	for key, value := range values {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	p.objects = append(p.objects, Object{"apiVersion": "v1", "kind": "Secret", "metadata": p.meta(secretName(p.GUID, part)), "type": kind, "data": data})
}

// secrets adds what the pod reads and who may see the pod should not.
func (p *instancePod) secrets() {
	for n := range p.runs {
		values := map[string][]byte{}
		for name, value := range p.given(n) {
			if !secretKey().MatchString(name) {
				p.dropped = append(p.dropped, name)
				continue
			}
			values[name] = []byte(value)
		}
		if len(values) > 0 {
			p.secret(envPartOf(n), opaque, values)
		}
	}
	if files := p.AllFiles(); files != nil {
		p.record.Files = map[string]string{}
		for n, path := range sortedPaths(files) {
			p.record.Files[path] = "file-" + strconv.Itoa(n)
		}
		p.secret(filesPart, opaque, fileValues(p.record, files))
	}
	if p.image.Password != "" {
		host, _, _ := strings.Cut(p.image.Reference, "/")
		if host == "docker.io" {
			host = "https://index.docker.io/v1/"
		}
		auth := base64.StdEncoding.EncodeToString([]byte(p.image.Username + ":" + p.image.Password))
		text, _ := json.Marshal(doc{"auths": doc{host: doc{"username": p.image.Username, "password": p.image.Password, "auth": auth}}}) // strings alone
		p.secret(pullPart, dockerConfig, map[string][]byte{dockerConfigFile: text})
	}
}

func fileValues(r Record, files []lrp.File) map[string][]byte {
	values := map[string][]byte{}
	for _, f := range files {
		values[r.Files[f.Path]] = f.Content
	}
	return values
}

// errOtherFiles is of files whose names a pod that runs cannot get.
var errOtherFiles = errors.New("a pod has the same files for as long as it runs: restart the app for files of other bindings")

// FilesPatch is the change of an instance's Secret that gives it other files. They have to have
// the names of those that it was started with.
func FilesPatch(r Record, files []lrp.File) (map[string]any, error) {
	paths := sortedPaths(files)
	if len(paths) != len(r.Files) {
		return nil, errOtherFiles
	}
	data := doc{}
	for _, path := range paths {
		if r.Files[path] == "" {
			return nil, errOtherFiles
		}
	}
	for key, value := range fileValues(r, files) {
		data[key] = base64.StdEncoding.EncodeToString(value)
	}
	return doc{"data": data}, nil
}

// FilesSecret names the Secret with an instance's files.
func FilesSecret(guid string) string { return secretName(guid, filesPart) }

func (p *instancePod) volumes() []any {
	if p.record.Files == nil {
		return nil
	}
	var items []any
	for _, path := range sortedPaths(p.AllFiles()) {
		items = append(items, doc{"key": p.record.Files[path], "path": path})
	}
	source := doc{"secretName": secretName(p.GUID, filesPart), "defaultMode": 0o440}
	if len(items) > 0 {
		source["items"] = items
	}
	return []any{doc{"name": "files", "secret": source}}
}

func (p *instancePod) mounts() []any {
	if p.record.Files == nil {
		return nil
	}
	return []any{doc{"name": "files", "mountPath": lrp.FilesPath, "readOnly": true}}
}

// given are the variables that the nth process is given, the later of a name.
func (p *instancePod) given(n int) map[string]string {
	values := map[string]string{}
	for _, list := range [][]lrp.EnvVar{p.Env, p.runs[n].Env} {
		for _, v := range list {
			values[v.Name] = v.Value
		}
	}
	return values
}

func (p *instancePod) envFrom(n int) []any {
	for name := range p.given(n) {
		if secretKey().MatchString(name) {
			return []any{doc{"secretRef": doc{"name": secretName(p.GUID, envPartOf(n))}}}
		}
	}
	return nil
}

// env are the variables that a cell sets, but those that the process is given. Of addresses it
// has the pod's alone, as on other cells of cupola.
func (p *instancePod) env(n int) (all []any) {
	given := p.given(n)
	add := func(v doc) {
		if _, has := given[text(v, "name")]; !has {
			all = append(all, v)
		}
	}
	set := func(name, value string) { add(doc{"name": name, "value": value}) }
	for _, name := range []string{"CF_INSTANCE_IP", "CF_INSTANCE_INTERNAL_IP"} {
		add(doc{"name": name, "valueFrom": doc{"fieldRef": doc{"fieldPath": "status.podIP"}}})
	}
	set("CF_INSTANCE_GUID", p.GUID)
	set("CF_INSTANCE_PORTS", p.instancePorts())
	set("USER", contract.VcapName)
	if Stages(p.Container) { // others have a launcher, or are an image's
		set("HOME", contract.Home)
		set("PATH", searchPath)
	}
	port := ""
	if len(p.Ports) > 0 {
		port = strconv.Itoa(int(p.Ports[0]))
		set(contract.EnvPort, port)
		set("CF_INSTANCE_ADDR", "$(CF_INSTANCE_IP):"+port)
	} else {
		set("CF_INSTANCE_ADDR", "")
	}
	set("CF_INSTANCE_PORT", port)
	if p.Kind == lrp.KindInstance {
		set("CF_INSTANCE_INDEX", strconv.Itoa(p.Index))
		set(contract.EnvInstanceGUID, p.GUID)
		set(contract.EnvInstanceIndex, strconv.Itoa(p.Index))
	}
	return all
}

// instancePorts is the JSON of CF_INSTANCE_PORTS.
func (p *instancePod) instancePorts() string {
	var all []string
	for _, port := range p.Ports {
		all = append(all, fmt.Sprintf(`{"external":%d,"internal":%d}`, port, port))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// sourceOf is the source of the log of a pod's container.
func (r Record) sourceOf(container string) string {
	return cmp.Or(r.Sources[container], r.Container.Log.Source)
}

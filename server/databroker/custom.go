package databroker

import (
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"cupola/runtime/contract"
	"cupola/runtime/lrp"
	"cupola/server/databroker/servicefile"
	"cupola/store"
	"cupola/store/cf"
)

// custom is the engine of an instance of a service file.
type custom struct {
	definition
	instance *cf.DataInstance
}

// definition is what an instance is made of: the file as it was then, and what its image was.
type definition struct {
	File  servicefile.File
	Image Image
}

// Image is an image of a registry as it was pulled.
type Image struct {
	Reference       string // with the digest; "" until it is pulled
	User, Directory string // "" where the image does not say
	Entrypoint, Cmd []string
	Env             []string // NAME=value
}

// imageUser is whom an image runs as that names no user.
const imageUser = "root"

// customService is the service that a file describes.
func customService(f *servicefile.File) service {
	s := service{name: f.Name, description: f.Description, display: f.DisplayName, tags: f.Tags, version: f.Version, port: f.Ports[0], morePorts: f.Ports[1:],
		engine: custom{definition: definition{File: *f}}, complaints: []string{customFault}}
	if s.tags == nil {
		s.tags = []string{}
	}
	for _, p := range f.Plans {
		one := plan{p.Name, p.Description, int(p.Memory >> 20), int64(p.Disk)}
		if f.Volume == "" {
			one.volumeBytes = 0
		}
		s.plans = append(s.plans, one)
	}
	return s
}

// customOf is the service that an instance was made of.
func customOf(i *cf.DataInstance) (service, bool) {
	var d definition
	if json.Unmarshal([]byte(i.Definition), &d) != nil || len(d.File.Ports) == 0 {
		return service{}, false // it was written by a later cupola
	}
	s := customService(&d.File)
	s.engine = custom{d, i}
	return s, true
}

// definition is what new instances of a service keep; "" of a built-in one.
func (s service) definition() string {
	if e, ok := s.engine.(custom); ok {
		return e.text()
	}
	return ""
}

func (d definition) text() string {
	text, err := json.Marshal(d)
	if err != nil {
		panic(err) // the file was checked to be JSON
	}
	return string(text)
}

// checkVersion refuses a request for another version than the file's.
func (s service) checkVersion(q request) error {
	if q.Maintenance == nil || q.Maintenance.Version == s.version {
		return nil
	}
	return &refusal{Status: http.StatusUnprocessableEntity, Code: otherVersion, Text: fmt.Sprintf("%s has the version %q, not %q", s.name, s.version, q.Maintenance.Version)}
}

// argv is the command of the container; empty if neither file nor image says one.
func (d definition) argv() []string {
	switch {
	case len(d.File.Command) > 0:
		return slices.Concat(d.File.Command, d.File.Args)
	case len(d.File.Args) > 0:
		return slices.Concat(d.Image.Entrypoint, d.File.Args)
	}
	return slices.Concat(d.Image.Entrypoint, d.Image.Cmd)
}

// vars are the values that templates of the instance name.
func (e custom) vars(p plan) servicefile.Vars {
	v := servicefile.Vars{servicefile.VarHost: host(e.instance.GUID), servicefile.VarPort: fmt.Sprint(e.File.Ports[0]), servicefile.VarGUID: e.instance.GUID,
		servicefile.VarMemory: fmt.Sprint(p.memoryMB), servicefile.VarDisk: fmt.Sprint(p.volumeBytes >> 20)}
	for _, name := range e.File.Secrets {
		v[name] = e.secret(name)
	}
	return v
}

// secret is a secret of the instance, in letters and digits. It is derived from the one that the
// instance's row keeps, so that it is the same after an upgrade, and another one after a restore into a new instance.
func (e custom) secret(name string) string {
	h := hmac.New(sha256.New, []byte(e.instance.Secret))
	h.Write([]byte("service file: " + name))
	return base32.StdEncoding.EncodeToString(h.Sum(nil))[:32]
}

// run is what the container runs, and on what. The image's user owns the directory of the volume.
func (e custom) run(p plan) lrp.RunInfo {
	const rootMB = 512
	f, vars := &e.File, e.vars(p)
	argv := vars.ExpandAll(e.argv())
	run := lrp.Run{Path: argv[0], Args: argv[1:], Dir: cmp.Or(e.Image.Directory, "/"), User: cmp.Or(f.User, e.Image.User, imageUser)}
	if f.IsStack() {
		run.User = cmp.Or(f.User, contract.VcapName)
	}
	info := lrp.RunInfo{RootFS: e.rootFS(), DiskMB: rootMB, Env: baseEnv()}
	if f.Registry != nil {
		info.ImageUsername, info.ImagePassword = f.Registry.Username, f.Registry.Password
	}
	for _, variable := range e.Image.Env {
		name, value, _ := strings.Cut(variable, "=")
		info.Env = append(info.Env, lrp.EnvVar{Name: name, Value: value})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		info.Env = append(info.Env, lrp.EnvVar{Name: name, Value: vars.Expand(f.Env[name])})
	}
	if f.Volume != "" {
		info.Volumes = []lrp.Volume{{Name: e.instance.GUID, Path: f.Volume, Dir: "data", Owner: run.User, Exclusive: true}}
	}
	info.Action = run.Action()
	return info
}

func (e custom) check() lrp.Check {
	if e.File.Health.Path != "" {
		return lrp.Check{Type: lrp.CheckHTTP, Port: e.File.HealthPort(), Path: e.File.Health.Path}
	}
	return lrp.Check{Type: lrp.CheckPort, Port: e.File.HealthPort()}
}

// customFault comes before what a command of a file says that failed.
const customFault = "error: "

// client runs the command for a binding that the line which it reads names. The password is in the environment, which other
// users of the machine cannot see.
func (e custom) client() string {
	return `exec 2>&1
read -r verb USERNAME PASSWORD || exit
export USERNAME PASSWORD
case $verb in bind) script=` + quoted(e.File.Bind) + ` ;; *) script=` + quoted(e.File.Unbind) + ` ;; esac
if said=$(/bin/sh -ec "$script" </dev/null 2>&1); then echo "` + done + `"; else echo "` + customFault + `$verb failed: $(printf %s "$said" | tail -n 1 | tail -c 500)"; fi`
}

// quoted is a text as one word of the shell.
func quoted(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func (custom) setUp() string { return "" }

func (e custom) grant(user, password string) string {
	if e.File.Bind == "" {
		return ""
	}
	return "bind " + user + " " + password + "\n"
}

func (e custom) revoke(user string) string {
	if e.File.Unbind == "" {
		return ""
	}
	return "unbind " + user + "\n"
}

func (e custom) credentials(a access) object {
	_, p, _ := known(e.instance)
	vars := e.vars(p)
	vars[servicefile.VarUsername], vars[servicefile.VarPassword] = a.user, a.password
	return vars.ExpandValue(e.File.Credentials).(map[string]any)
}

func (e custom) version() string { return "echo " + quoted(e.File.Name+" "+e.File.Version) }
func (e custom) dump() string    { return command(e.File.Backup) }
func (e custom) load() string    { return command(e.File.Restore) }

// command runs a program of the file, of which each line must succeed; "" for none.
func command(script string) string {
	if script == "" {
		return ""
	}
	return "/bin/sh -ec " + quoted(script)
}

// withhold removes secrets from an error that a command of a file caused, which tenants see. statements are what it was
// given.
func (s service) withhold(err error, statements string) error {
	e, ok := s.engine.(custom)
	if err == nil || !ok {
		return err
	}
	var secrets []string
	for _, name := range e.File.Secrets {
		secrets = append(secrets, e.secret(name), "***")
	}
	if words := strings.Fields(statements); len(words) > 2 {
		secrets = append(secrets, words[2], "***")
	}
	if text := strings.NewReplacer(secrets...).Replace(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// RootFS is what an instance runs on.
type RootFS struct{ GUID, RootFS string }

// RootFSes lists what the instances of service files run on, and what they are upgraded to.
func RootFSes(tx *store.Tx) (all []RootFS, err error) {
	instances, err := store.DataInstances.All(tx)
	for _, i := range instances {
		for _, text := range []string{i.Definition, i.Next} {
			var d definition
			if text == "" || json.Unmarshal([]byte(text), &d) != nil {
				continue
			}
			if name := d.rootFS(); name != "" {
				all = append(all, RootFS{i.GUID, name})
			}
		}
	}
	return all, err
}

// rootFS is what the container runs on; "" while the image is not pulled yet.
func (d definition) rootFS() string {
	if d.File.IsStack() {
		return d.File.Image
	}
	return d.Image.Reference
}

// Package manifest reads and writes app manifests. It is pure: what a manifest
// means for rows is server/control/manifests's.
package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"cupola/runtime/contract"
	"cupola/server/bindings"
	"cupola/server/control/message"
	"cupola/store/cf"
)

// MaxBytes is Cloud Controller's limit of a manifest's size.
const MaxBytes = 1 << 20

// Manifest is what a user wants of some apps of a space.
type Manifest struct {
	Apps []App
}

// App is one entry of "applications". A nil field was not given and changes
// nothing.
type App struct {
	Name         string
	Lifecycle    *string // cf.LifecycleBuildpack or LifecycleCNB
	Buildpacks   []string
	BuildpackSet bool // Buildpacks was given, if only to reset it
	Stack        *string
	// Credentials of image registries: the CLI has them under this key for any
	// lifecycle.
	Credentials    map[string]any
	CredentialsSet bool
	Env            map[string]any
	Features       map[string]bool
	Labels         map[string]*string
	Annotations    map[string]*string
	Processes      []Process    // web first; the entry's own keys are those of web
	Sidecars       []cf.Sidecar // without GUID and Origin
	Jobs           []Job
	Services       []Service
	Docker         bool
	Routes         []Route
	RoutesSet      bool
	NoRoute        bool
	RandomRoute    bool
	DefaultRoute   bool

	Metadata map[string]any // as it was written: Labels and Annotations

	raw  map[string]any // as it was written: for a diff
	node *yaml.Node     // likewise, in order: for an audit event
}

// Process is one process of an app.
type Process struct {
	Type      string
	Listed    bool    // it is one of "processes"
	Command   *string // "" : the droplet's
	User      *string // "" : the lifecycle's
	Instances *int
	MemoryMB  *int
	DiskMB    *int
	LogRate   *int64 // bytes a second, -1: no limit
	Health    Check
	Readiness Check
}

// Check is a health check; durations in seconds.
type Check struct {
	Type              *string
	Endpoint          *string
	Timeout           *int
	InvocationTimeout *int
	Interval          *int
}

// LifecycleCNB is the type of apps that Cloud Native Buildpacks stage.
const LifecycleCNB = "cnb"

// Buildpack is the key of an entry that names buildpacks, as Cloud Controller's messages
// have it; "" without one.
func (app *App) Buildpack() string {
	keys := underscored(app.raw)
	switch {
	case keys["buildpacks"] != nil:
		return "Buildpacks"
	case keys["buildpack"] != nil:
		return "Buildpack"
	}
	return ""
}

// Service is a service instance to bind to the app.
type Service struct {
	Name        string
	BindingName *string        // nil: the binding gets none
	Parameters  map[string]any // for the broker; nil for none
}

// Invalid is what is wrong with a manifest, in Cloud Controller's words.
type Invalid []string

func (e Invalid) Error() string { return strings.Join(e, ", ") }

// What Parse says, in Cloud Controller's words, of a text that is no YAML or not
// the YAML of a manifest, and of one that could unfold without end.
var (
	errSyntax  = errors.New("Request invalid due to parse error: invalid request body")
	ErrAliases = errors.New("Bad request: Manifest does not support Anchors and Aliases")
)

// The YAML module compares each key of a map with all others: a megabyte of keys
// would take it minutes.
const (
	maxNodes = 100_000
	maxKeys  = 10_000 // of one map
)

// How many entries the lists of a manifest may have. Cloud Controller has no such
// limits; one machine runs no more, and each is at least a row.
const (
	maxApps      = 2000
	maxRoutes    = 1000 // of an app, and so on
	maxServices  = 200
	maxProcesses = contract.MaxProcesses
	maxSidecars  = contract.MaxSidecars
	// maxCommand and maxName are Cloud Controller's, in characters.
	maxCommand = 4096
	// maxInstances is Cloud Controller's for manifests.
	maxInstances = 2_000_000
	maxName      = 255
)

// ErrLarge is what Parse says of a text that takes too long.
var ErrLarge = fmt.Errorf("Bad request: Manifest is too large. It may have at most %d values, and %d keys in one map.", maxNodes, maxKeys) //nolint:revive,staticcheck // as Cloud Controller writes

// Parse reads a manifest and checks it whole: the error is an Invalid with all
// that is wrong, ErrSyntax, ErrAliases or ErrLarge. Keys that Cloud Controller does not know are
// passed over, as it does.
func Parse(text []byte) (*Manifest, error) {
	var root yaml.Node
	d := yaml.NewDecoder(gentle{bytes.NewReader(text)})
	if err := d.Decode(&root); err != nil {
		return nil, errSyntax
	}
	if aliased(&root) {
		return nil, ErrAliases
	}
	if left := maxNodes; !fits(&root, &left) {
		return nil, ErrLarge
	}
	simplify(&root)
	var top struct {
		Version      any
		Applications yaml.Node
	}
	if err := root.Decode(&top); err != nil {
		return nil, errSyntax
	}
	if !slices.Contains([]any{nil, false, 1, 1.0}, top.Version) {
		return nil, Invalid{"Unsupported manifest schema version. Currently supported versions: [1]."}
	}
	list := top.Applications.Content
	if top.Applications.Kind != yaml.SequenceNode || len(list) == 0 {
		return nil, Invalid{"Cannot parse manifest with no 'applications' field."}
	}
	if len(list) > maxApps {
		return nil, Invalid{fmt.Sprintf("Applications may have at most %d entries, it has %d", maxApps, len(list))}
	}
	m := &Manifest{}
	var faults Invalid
	for i, node := range list {
		runtime.Gosched() // to read many takes long
		var entry any
		if err := node.Decode(&entry); err != nil {
			return nil, errSyntax
		}
		app, bad := parseApp(i, entry)
		app.node = node
		m.Apps, faults = append(m.Apps, app), append(faults, bad...)
	}
	if len(faults) > 0 {
		return nil, faults
	}
	return m, nil
}

// gentle lets others run before each read, of at most 512 bytes: to parse a large
// manifest takes 20 ms, and Go takes the processor away only after 10.
type gentle struct{ io.Reader }

func (g gentle) Read(p []byte) (int, error) {
	runtime.Gosched()
	return g.Reader.Read(p)
}

// fits reports whether a tree has no more nodes than are left, and no large map.
func fits(n *yaml.Node, left *int) bool {
	if *left--; *left < 0 || n.Kind == yaml.MappingNode && len(n.Content) > 2*maxKeys {
		return false
	}
	return !slices.ContainsFunc(n.Content, func(c *yaml.Node) bool { return !fits(c, left) })
}

// Decode reads the YAML of a manifest with the types that Parse finds, for who
// sends it on. An empty text changes nothing.
func Decode(text []byte, into any) error {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil || root.IsZero() {
		return err
	}
	simplify(&root)
	return root.Decode(into)
}

// simplify makes of a manifest what Cloud Controller reads: text of dates, as they are
// written, and of keys, since no field is a time and labels may be called 1 or true;
// and booleans of YAML 1.1's words for them.
func simplify(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		simplifyScalar(n)
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.ShortTag() != "!!merge" {
			c.Tag = "!!str"
			continue
		}
		simplify(c)
	}
}

func simplifyScalar(n *yaml.Node) {
	switch tag := n.ShortTag(); {
	case tag == "!!timestamp":
		n.Tag = "!!str"
	case tag != "!!str" || n.Style != 0: // it is quoted, or has a tag
	case oldBooleans[strings.ToLower(n.Value)] != "":
		n.Tag, n.Value = "!!bool", oldBooleans[strings.ToLower(n.Value)]
	}
}

// oldBooleans are the words for booleans in YAML 1.1, as Psych reads it.
var oldBooleans = map[string]string{"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false"}

func aliased(n *yaml.Node) bool {
	if n.Kind == yaml.AliasNode || n.Anchor != "" {
		return true
	}
	return slices.ContainsFunc(n.Content, aliased)
}

// parseApp reads one entry; each fault names the app.
func parseApp(i int, entry any) (App, []string) {
	f := &fields{where: fmt.Sprintf("For application at index %d: ", i)}
	m, ok := entry.(map[string]any)
	if !ok {
		f.fault("must be a map")
		return App{}, f.faults
	}
	f.m = underscored(m)
	app := App{raw: m}
	if name := f.m["name"]; message.Blank(name) {
		f.fault("Name must not be empty")
	} else {
		app.Name = message.Text(name)
		f.where = fmt.Sprintf("For application '%s': ", app.Name)
	}
	if _, isText := f.m["name"].(string); !isText {
		f.fault("Name must be a string")
	}
	app.read(f)
	return app, f.faults
}

func (app *App) read(f *fields) {
	app.readProcesses(f)
	app.readSidecars(f)
	app.readJobs(f)
	app.Lifecycle, app.Stack = f.lifecycle(), f.stack()
	app.Buildpacks, app.BuildpackSet = f.buildpacks()
	if b := f.buildpack(); b != nil && !app.BuildpackSet {
		app.BuildpackSet = true
		if *b != "" {
			app.Buildpacks = []string{*b}
		}
	}
	one, many := f.has("buildpack"), f.has("buildpacks")
	if one && many {
		f.fault("Buildpack and Buildpacks fields cannot be used together.")
	}
	app.readEnv(f)
	app.Credentials = f.object("cnb_credentials", "Credentials")
	app.CredentialsSet = app.Credentials != nil
	app.Docker = f.m["docker"] != nil
	if app.Docker && (one || many) {
		f.fault("Cannot specify both buildpack(s) and docker keys")
	}
	app.readMetadata(f)
	app.readServices(f)
	app.readRoutes(f)
	if app.RandomRoute && app.DefaultRoute {
		f.fault("Random-route and default-route may not be used together")
	}
	app.readFeatures(f)
}

// readEnv reads the variables; their values are taken as text.
func (app *App) readEnv(f *fields) {
	v, given := f.m["env"]
	env, ok := v.(map[string]any)
	if given && !ok {
		f.fault("Env must be an object of keys and values")
	}
	for _, name := range slices.Sorted(maps.Keys(env)) {
		if fault := message.VariableFault(name); fault != "" {
			f.fault("Env " + fault)
		}
	}
	app.Env = env
}

// readMetadata reads labels and annotations (CC: app/messages/validators/metadata_validator.rb).
func (app *App) readMetadata(f *fields) {
	app.Metadata = f.object("metadata", "Metadata")
	meta := &fields{where: f.where + "Metadata ", m: app.Metadata}
	known := func(key string) bool { return key == "labels" || key == "annotations" }
	if unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(app.Metadata)), known); len(unknown) > 0 {
		meta.fault("has unexpected field(s): '" + strings.Join(unknown, "' '") + "'")
	}
	app.Labels, app.Annotations = meta.metadata("labels", message.LabelFaults), meta.metadata("annotations", message.AnnotationFaults)
	f.faults = append(f.faults, meta.faults...)
}

// features are the app features that a manifest may name.
var features = []string{"ssh", "revisions", string(bindings.FormK8s), string(bindings.FormVCAP), string(bindings.FormServiceBindingIO)}

// readFeatures takes Cloud Controller's map and both lists that RFC-0030
// proposes: of "name: true" and of {name, enabled}.
func (app *App) readFeatures(f *fields) {
	v, given := f.m["features"]
	if !given {
		return
	}
	named, ok := featureMap(v)
	ok = ok && len(named) > 0
	app.Features = map[string]bool{}
	for name, on := range named {
		var is bool
		app.Features[name], is = on.(bool)
		ok = ok && is && slices.Contains(features, name)
	}
	if !ok {
		f.fault("Features must be a map of valid feature names to booleans (true = enabled, false = disabled)")
	}
}

func featureMap(v any) (named map[string]any, ok bool) {
	list, isList := v.([]any)
	if !isList {
		named, ok = v.(map[string]any)
		return named, ok
	}
	named = map[string]any{}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok {
			return nil, false
		}
		if name, ok := m["name"].(string); ok && len(m) == 2 {
			m = map[string]any{name: m["enabled"]}
		}
		maps.Copy(named, m)
	}
	return named, true
}

func (app *App) readServices(f *fields) {
	list := f.whole("services")
	if !f.atMost("services", len(list), maxServices) {
		return
	}
	for _, v := range list {
		s, ok := readService(v)
		if !ok {
			f.fault("Services must be a list of service instances")
			return
		}
		app.Services = append(app.Services, s)
	}
}

func readService(v any) (s Service, ok bool) {
	if name, isText := v.(string); isText {
		return Service{Name: name}, true
	}
	m, _ := v.(map[string]any)
	for key, value := range m {
		good := false
		switch key {
		case "name":
			s.Name, good = value.(string)
		case "binding_name":
			var name string
			name, good = value.(string)
			s.BindingName = &name
		case "parameters":
			s.Parameters, good = value.(map[string]any)
		}
		if !good {
			return s, false
		}
	}
	return s, s.Name != ""
}

// readProcesses reads "processes", and the entry's own keys as those of web.
func (app *App) readProcesses(f *fields) {
	web := &fields{m: f.m, where: f.where + "Process \"web\": "}
	own := readProcess(web, false)
	own.Type = "web"
	f.faults = append(f.faults, web.faults...)
	list := f.whole("processes")
	if !f.atMost("processes", len(list), maxProcesses) {
		return
	}
	seen := map[string]bool{}
	for _, v := range list {
		m, ok := v.(map[string]any)
		if !ok {
			f.fault("Processes must be an array of process configurations")
			return
		}
		pf := &fields{m: underscored(m)}
		if message.Blank(pf.m["type"]) {
			f.fault("All Processes must specify a type")
			return
		}
		kind := message.Text(pf.m["type"])
		if len(kind) > maxName {
			f.fault(fmt.Sprintf("Process types must be between 1 and %d characters", maxName))
			return
		}
		pf.where = f.where + fmt.Sprintf("Process \"%s\": ", kind)
		if seen[kind] {
			f.fault(fmt.Sprintf("Process \"%s\" may only be present once", kind))
		}
		seen[kind] = true
		p := readProcess(pf, true)
		p.Type = kind
		f.faults = append(f.faults, pf.faults...)
		app.Processes = append(app.Processes, p)
	}
	if !seen["web"] && own.given() {
		app.Processes = append([]Process{own}, app.Processes...)
	}
	app.readRelease(f)
	if i := slices.IndexFunc(app.Processes, func(p Process) bool { return p.Type == "web" }); i > 0 { // CC: AppManifestMessage.process_attributes
		web := app.Processes[i]
		app.Processes = slices.Insert(slices.Delete(app.Processes, i, i+1), 0, web)
	}
}

func (p Process) given() bool {
	return p.Command != nil || p.Instances != nil || p.MemoryMB != nil || p.DiskMB != nil || p.LogRate != nil || p.Health != (Check{}) || p.Readiness != (Check{})
}

// readProcess reads a process; one of "processes" is listed, and has a user.
func readProcess(f *fields, listed bool) Process {
	p := Process{Listed: listed, MemoryMB: f.megabytes("memory"), DiskMB: f.megabytes("disk_quota"), LogRate: f.rate("log_rate_limit_per_second")}
	p.Instances = f.number("instances", 0, maxInstances)
	f.forHTTP("health_check")
	f.forHTTP("readiness_health_check")
	p.Command = f.command()
	if listed {
		p.User = f.user()
	}
	p.Health = f.check("health_check")
	p.Health.Timeout = f.number("timeout", 1, maxSeconds)
	p.Readiness = f.check("readiness_health_check")
	return p
}

// readRelease reads the release command, which is that of the process "release".
func (app *App) readRelease(f *fields) {
	r := &fields{m: map[string]any{"command": f.m["release"]}, where: f.where + "Release: "}
	if _, given := f.m["release"]; !given {
		return
	}
	command := r.command()
	f.faults = append(f.faults, r.faults...)
	i := slices.IndexFunc(app.Processes, func(p Process) bool { return p.Type == "release" })
	if i < 0 {
		app.Processes = append(app.Processes, Process{Type: "release"})
		i = len(app.Processes) - 1
	}
	app.Processes[i].Command = command
}

func (app *App) readSidecars(f *fields) {
	list := f.whole("sidecars")
	if !f.atMost("sidecars", len(list), maxSidecars) {
		return
	}
	for _, v := range list {
		m, _ := v.(map[string]any)
		s, faults := readSidecar(m)
		for _, fault := range faults {
			if name := m["name"]; message.Blank(name) {
				f.fault("Sidecar " + strings.ToLower(fault))
			} else {
				f.fault(fmt.Sprintf("Sidecar \"%s\": %s", message.Text(name), fault))
			}
		}
		app.Sidecars = append(app.Sidecars, s)
	}
}

// readSidecar reads a sidecar; faults are those of Cloud Controller's
// sidecar_create_message.rb.
func readSidecar(m map[string]any) (s cf.Sidecar, faults []string) {
	sf := &fields{m: m}
	s.Name, s.Command = sf.filled("name"), sf.filled("command")
	s.ProcessTypes, _ = sf.texts("process_types")
	if types := m["process_types"]; message.Size(types) == 0 {
		if types == nil {
			sf.fault("Process types must be an array")
		}
		sf.fault("Process types must have at least 1 process_type")
	}
	s.MemoryMB = sf.sidecarMemory()
	sf.short("Name", s.Name, maxName)
	sf.short("Command", s.Command, maxCommand)
	for _, t := range s.ProcessTypes {
		sf.short("Process type", t, maxName)
	}
	return s, sf.faults
}

// filled is a string that must be there.
func (f *fields) filled(key string) string {
	s, ok := f.m[key].(string)
	if message.Blank(f.m[key]) {
		f.fault(title(key) + " can't be blank")
	}
	if !ok {
		f.fault(title(key) + " must be a string")
	}
	return s
}

// sidecarMemory is a size, or a number of megabytes; 0 for none.
func (f *fields) sidecarMemory() int {
	v := f.m["memory"]
	if v == nil {
		return 0
	}
	memory := &fields{m: map[string]any{"memory_in_mb": v}}
	if n, ok := quantity(fmt.Sprint(v)); ok {
		memory.m["memory_in_mb"] = int(n >> 20)
	}
	n := memory.number("memory_in_mb", math.MinInt, math.MaxInt32)
	f.faults = append(f.faults, memory.faults...)
	switch {
	case n == nil:
		return 0
	case *n <= 0:
		f.fault("Memory in mb must be greater than 0")
	}
	return *n
}

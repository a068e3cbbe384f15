package servicefile

import (
	"fmt"
	"maps"
	"math"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"cupola/rootfs/reference"
	"cupola/runtime/pattern"
)

// What names are made of. A plan's has no dash, so that no two plans have the same ID.
var (
	nameRule    = pattern.Lazy(`^[a-z][a-z0-9-]{0,39}$`)
	planRule    = pattern.Lazy(`^[a-z0-9]{1,30}$`)
	secretRule  = pattern.Lazy(`^[a-z][a-z0-9_]{0,39}$`)
	envRule     = pattern.Lazy(`^[A-Za-z_][A-Za-z0-9_]{0,99}$`)
	versionRule = pattern.Lazy(`^(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})\.(0|[1-9][0-9]{0,8})$`)
)

// How many of a thing a file may have.
const (
	maxPorts = 16
	maxPlans = 20
	maxItems = 100 // of every other list
	maxTexts = 200 // characters of a description
)

// check fills in defaults and notes all that is wrong.
func (c *checker) check() {
	for _, check := range []func(){c.checkTexts, c.checkImage, c.checkPorts, c.checkVolume, c.checkSecrets, c.checkPlans, c.checkTemplates, c.checkCommands} {
		check()
	}
}

func (c *checker) checkTexts() {
	f := c.file
	if !nameRule().MatchString(f.Name) {
		c.fault("name", "invalid name %q: give up to 40 letters a to z, digits and dashes, a letter first", short(f.Name))
	}
	if !versionRule().MatchString(f.Version) {
		c.fault("version", "invalid version %q: give three numbers, like 1.0.0; a later one offers instances an upgrade", short(f.Version))
	}
	if f.Description == "" {
		c.fault("description", "is missing: give a line for 'cf marketplace'")
	}
	for field, text := range map[string]string{"description": f.Description, "display_name": f.DisplayName} {
		c.oneLine(field, text)
	}
	if f.DisplayName == "" {
		f.DisplayName = f.Name
	}
	if len(f.Tags) > maxItems {
		c.fault("tags", "at most %d are accepted", maxItems)
	}
	for n, tag := range f.Tags {
		c.oneLine(fmt.Sprint("tags.", n), tag)
	}
	if len(strings.Join(f.Tags, "")) > 2000 {
		c.fault("tags", "at most 2000 characters are accepted")
	}
}

// oneLine requires a text to be a short line.
func (c *checker) oneLine(field, text string) {
	if utf8.RuneCountInString(text) > maxTexts || strings.ContainsFunc(text, unicode.IsControl) {
		c.fault(field, "give one line of at most %d characters", maxTexts)
	}
}

// validText reports whether a text can be an argument or a variable, and an answer.
func validText(text string) bool { return utf8.ValidString(text) && !strings.ContainsRune(text, 0) }

func (c *checker) checkImage() {
	f := c.file
	if f.Image == "" {
		c.fault("image", "is missing: give one in a registry, like docker://docker.io/library/redis:7, or a stack of this machine, like preloaded:NAME")
		return
	}
	if !strings.Contains(f.Image, "://") && !strings.HasPrefix(f.Image, "preloaded:") && !strings.HasPrefix(f.Image, "oci:") {
		f.Image = "docker://" + f.Image
	}
	r, err := reference.Parse(f.Image)
	switch {
	case err != nil:
		c.fault("image", "%v", err)
	case r.Scheme == reference.SchemeOCI:
		c.fault("image", "make a stack of it with 'sudo cupola stack pull %s --name NAME', and give preloaded:NAME", short(f.Image))
	case r.Scheme == reference.SchemePreloaded && len(f.Command) == 0:
		c.fault("command", "is missing: a stack has none")
	}
	if f.Registry != nil && (f.Registry.Username == "" || f.Registry.Password == "" || f.IsStack()) {
		c.fault("registry", "give username and password, for an image of a registry")
	}
	if len(f.User) > maxTexts || strings.ContainsFunc(f.User, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) || r == '/' }) {
		c.fault("user", "give a name or a number of the image's users, and after a colon a group")
	}
	if len(f.Command) > maxItems || len(f.Args) > maxItems {
		c.fault("command", "at most %d words are accepted, and as many args", maxItems)
	}
	if len(f.Command) > 0 && f.Command[0] == "" {
		c.fault("command.0", "is empty: give a program")
	}
}

func (c *checker) checkPorts() {
	f := c.file
	if len(f.Ports) == 0 || len(f.Ports) > maxPorts {
		c.fault("ports", "give 1 to %d ports that the server listens on, like [9000]", maxPorts)
		return
	}
	for n, port := range f.Ports {
		if port == 0 || slices.Contains(f.Ports[:n], port) {
			c.fault(fmt.Sprint("ports.", n), "invalid port %d: give 1 to 65535, each once", port)
		}
	}
	if port := f.Health.Port; port != 0 && !slices.Contains(f.Ports, port) {
		c.fault("health.port", "invalid port %d: give one of ports", port)
	}
	if p := f.Health.Path; p != "" && (p[0] != '/' || len(p) > maxTexts || strings.ContainsFunc(p, func(r rune) bool { return r <= ' ' || r >= 127 })) {
		c.fault("health.path", "invalid path %q: give one like /health", short(p))
	}
}

func (c *checker) checkVolume() {
	v := c.file.Volume
	if v == "" {
		return
	}
	top, _, _ := strings.Cut(strings.TrimPrefix(v, "/"), "/")
	if !path.IsAbs(v) || path.Clean(v) != v || v == "/" || len(v) > maxTexts || slices.Contains([]string{"proc", "sys", "dev"}, top) || strings.ContainsFunc(v, unicode.IsControl) {
		c.fault("volume", "invalid directory %q: give the absolute path where the server keeps its data, like /data", short(v))
	}
}

func (c *checker) checkSecrets() {
	f := c.file
	if len(f.Secrets) > maxItems {
		c.fault("secrets", "at most %d are accepted", maxItems)
	}
	taken := append(slices.Clone(instanceVars), VarUsername, VarPassword)
	for n, name := range f.Secrets {
		if !secretRule().MatchString(name) || slices.Contains(taken, name) {
			c.fault(fmt.Sprint("secrets.", n), "invalid name %q: give letters a to z, digits and '_', each name once, and none of %s", short(name), strings.Join(append(slices.Clone(instanceVars), VarUsername, VarPassword), ", "))
		}
		taken = append(taken, name)
	}
}

func (c *checker) checkPlans() {
	f := c.file
	if f.Plans == nil {
		f.Plans = []Plan{{Name: "small", Memory: 256 << 20, Disk: 1 << 30}, {Name: "large", Memory: 1 << 30, Disk: 10 << 30}}
	}
	if len(f.Plans) == 0 || len(f.Plans) > maxPlans {
		c.fault("plans", "give 1 to %d, or leave them out for small and large", maxPlans)
	}
	var names []string
	for n := range f.Plans {
		p, field := &f.Plans[n], fmt.Sprint("plans.", n)
		if !planRule().MatchString(p.Name) || slices.Contains(names, p.Name) {
			c.fault(field+".name", "invalid name %q: give letters a to z and digits, each name once", short(p.Name))
		}
		if names = append(names, p.Name); p.Memory == 0 {
			c.fault(field+".memory", "is missing: give a size, like 256M")
		}
		if p.Disk == 0 && f.Volume != "" {
			c.fault(field+".disk", "is missing: give the size of the volume, like 1G")
		}
		if c.oneLine(field+".description", p.Description); p.Description == "" {
			p.Description = f.describe(*p)
		}
	}
}

// describe describes a plan by its sizes.
func (f *File) describe(p Plan) string {
	text := p.Memory.String() + " of memory"
	if f.Volume != "" {
		text += ", " + p.Disk.String() + " of disk"
	}
	return text
}

// String is the size in the largest unit that it is a number of.
func (s Size) String() string {
	if s%(1<<30) == 0 {
		return fmt.Sprintf("%d GB", s>>30)
	}
	return fmt.Sprintf("%d MB", s>>20)
}

func (c *checker) checkTemplates() {
	f := c.file
	known := slices.Concat(instanceVars, f.Secrets)
	if len(f.Env) > maxItems || len(f.Credentials) > maxItems {
		c.fault("env", "at most %d are accepted, and as many credentials", maxItems)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Env)) {
		if !envRule().MatchString(name) {
			c.fault("env", "invalid name %q: give letters, digits and '_'", short(name))
		}
		c.template("env."+name, f.Env[name], known)
	}
	for field, list := range map[string][]string{"command": f.Command, "args": f.Args} {
		for n, text := range list {
			c.template(fmt.Sprint(field, ".", n), text, known)
		}
	}
	if len(f.Credentials) == 0 {
		c.fault("credentials", "are missing: give what an app needs to connect, like uri: http://((host)):((port))")
	}
	if f.Bind != "" {
		known = append(known, VarUsername, VarPassword)
	}
	for _, name := range slices.Sorted(maps.Keys(f.Credentials)) {
		c.credential("credentials."+name, f.Credentials[name], known)
	}
}

// template requires that the names in a template are known.
func (c *checker) template(field, text string, known []string) {
	name, some := unknown(text, known)
	switch {
	case !some:
	case name == VarUsername || name == VarPassword:
		c.fault(field, "((%s)) is only known in credentials, of a service with bind; without it all bindings share secrets", name)
	default:
		c.fault(field, "unknown ((%s)): give one of %s, or a name of secrets", short(name), strings.Join(known, ", "))
	}
}

// credential requires a value that is one of JSON.
func (c *checker) credential(field string, value any, known []string) {
	switch value := value.(type) {
	case string:
		c.template(field, value, known)
	case []any:
		for n, one := range value {
			c.credential(fmt.Sprint(field, ".", n), one, known)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(value)) {
			c.credential(field+"."+key, value[key], known)
		}
	case float64:
		if math.IsInf(value, 0) || math.IsNaN(value) {
			c.fault(field, "is not a number of JSON")
		}
	case int:
		if value > 1<<53 || value < -1<<53 {
			c.fault(field, "is too large for a number of JSON: quote it")
		}
	case bool, nil:
	default:
		c.fault(field, "give a text, a number, true, false, a list or fields")
	}
}

func (c *checker) checkCommands() {
	f := c.file
	switch {
	case f.Bind != "" && f.Unbind == "":
		c.fault("bind", "give unbind, too: it deletes the user that bind makes")
	case f.Bind == "" && f.Unbind != "":
		c.fault("unbind", "give bind, too: it makes the user that unbind deletes")
	}
	switch {
	case f.Restore != "" && f.Backup == "":
		c.fault("restore", "give backup, too: it writes what restore reads")
	case f.Backup != "" && f.Volume == "":
		c.fault("backup", "give volume, too: the directory of the data")
	}
}

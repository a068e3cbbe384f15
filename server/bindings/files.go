package bindings

import (
	"fmt"
	"regexp"
	"strings"

	"cupola/runtime/lrp"
	"cupola/runtime/pattern"
)

// Form is a way in which files tell of bindings; its text is the name of the
// app feature that chooses it.
type Form string

// The forms.
const (
	FormNone             Form = "" // the variable VCAP_SERVICES
	FormVCAP             Form = "file-based-vcap-services"
	FormK8s              Form = "service-binding-k8s"
	FormServiceBindingIO Form = "file-based-servicebinding-io"
)

// root is the directory of the files in a container.
const root = lrp.FilesPath

// vcapFile is the one file of FormVCAP.
const vcapFile = "vcap_services"

// maxBytes is how many bytes the paths and the contents of an app's files may
// have together.
const maxBytes = 1_000_000

// Variable is the environment variable with the path of the files.
func (f Form) Variable() lrp.EnvVar {
	if f == FormVCAP {
		return lrp.EnvVar{Name: "VCAP_SERVICES_FILE_PATH", Value: root + "/" + vcapFile}
	}
	return lrp.EnvVar{Name: "SERVICE_BINDING_ROOT", Value: root}
}

// Files are the files of a form, their paths below Root. The errors are Cloud
// Controller's texts; with the first of them come the files all the same, as
// they would have been.
func Files(form Form, all []Binding) ([]lrp.File, error) {
	b := builder{form: form, at: map[string]int{}}
	if form == FormVCAP {
		text, err := VCAPServices(all)
		b.fail(err)
		b.add(vcapFile, text)
		return b.finish()
	}
	names := map[string]Binding{}
	for _, one := range all {
		name := one.name()
		if !entryName(name, bindingPattern()) {
			b.fail(fmt.Errorf("Invalid binding name: '%s'. Name must match /^[a-z0-9\\-.]{1,253}$/", name)) //nolint:staticcheck // Cloud Controller's text
		}
		if other, taken := names[name]; taken {
			b.fail(form.duplicate(name, other, one))
		}
		names[name] = one
		b.binding(name, one)
	}
	return b.finish()
}

// duplicate says that two bindings would have the same directory.
func (f Form) duplicate(name string, a, b Binding) error {
	text := "Duplicate binding name: " + name
	if f == FormServiceBindingIO {
		text += fmt.Sprintf(": it is %s and %s. Bind one of them under another name", a.described(), b.described())
	}
	return fmt.Errorf("%s", text)
}

func (b Binding) described() string {
	if b.name() == b.InstanceName {
		return fmt.Sprintf("service instance '%s'", b.InstanceName)
	}
	return fmt.Sprintf("the binding '%s' of service instance '%s'", b.name(), b.InstanceName)
}

// The patterns of Cloud Controller, here of the whole text.
var (
	bindingPattern = pattern.Lazy(`\A[a-z0-9\-.]{1,253}\z`)
	filePattern    = pattern.Lazy(`\A[a-z0-9\-._]{1,253}\z`)
)

// entryName reports whether a name can be one of a directory's entries. What
// begins with two dots is the cell's own.
func entryName(name string, pattern *regexp.Regexp) bool {
	return pattern.MatchString(name) && name != "." && !strings.HasPrefix(name, "..")
}

// builder gathers files.
type builder struct {
	form  Form
	files []lrp.File
	at    map[string]int // index in files by path
	total int            // bytes of all that was added, as Cloud Controller counts: what is replaced counts twice
	err   error          // the first
}

func (b *builder) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// add adds a file; one of the same path is replaced, in its place.
func (b *builder) add(path string, content []byte) {
	b.total += len(path) + len(content)
	file := lrp.File{Path: path, Content: content}
	if i, ok := b.at[path]; ok {
		b.files[i] = file
		return
	}
	b.at[path] = len(b.files)
	b.files = append(b.files, file)
}

func (b *builder) finish() ([]lrp.File, error) {
	if b.total > maxBytes {
		b.fail(fmt.Errorf("Bindings exceed the maximum allowed bytesize of %d: %d", maxBytes, b.total)) //nolint:staticcheck // Cloud Controller's text
	}
	return b.files, b.err
}

func (b *builder) binding(dir string, one Binding) {
	credentials, err := one.credentials()
	b.fail(err)
	attributes, err := one.attributes()
	b.fail(err)
	for _, c := range credentials {
		b.entry(dir, c.name, c.value, b.form == FormServiceBindingIO)
	}
	attributes = append(attributes, attribute{"type", one.label()}, attribute{"provider", one.label()})
	for _, a := range attributes {
		name := a.name
		if b.form == FormServiceBindingIO {
			name = strings.ReplaceAll(name, "_", "-")
		}
		b.entry(dir, name, a.value, false)
	}
}

// entry adds the file of a key. Without empty, null, [] and {} make none.
func (b *builder) entry(dir, name string, v value, empty bool) {
	if !entryName(name, filePattern()) {
		b.fail(b.form.invalid(dir, name))
	}
	if s, ok := v.(string); ok {
		b.add(dir+"/"+name, []byte(s))
		return
	}
	text := string(encode(v, false))
	if empty || text != "null" && text != "[]" && text != "{}" {
		b.add(dir+"/"+name, []byte(text))
	}
}

// invalid says that a key of credentials cannot be the name of a file.
func (f Form) invalid(dir, name string) error {
	text := "Invalid file name: " + name
	if f == FormServiceBindingIO {
		text += fmt.Sprintf(" in binding '%s'. Name must match /^[a-z0-9\\-._]{1,253}$/; the app feature '%s' takes any key", dir, FormVCAP)
	}
	return fmt.Errorf("%s", text)
}

package databroker

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"cupola/server/databroker/servicefile"
)

// Offer is what --data-services names.
type Offer struct {
	Names  []string // of built-in services
	Files  []*servicefile.File
	Faults []error // of files that are not offered

	read []FileStatus // all files
}

// isFile reports whether a value of --data-services is a file, or a directory of files.
func isFile(value string) bool { return strings.Contains(value, "/") || servicefile.IsName(value) }

// ParseServices makes the files of --data-services absolute, and refuses values that are neither services nor files. Whether
// files are valid is known once they are read: one that is not keeps the daemon from nothing else.
func ParseServices(values []string) (all []string, err error) {
	for _, value := range values {
		var fault error
		if isFile(value) {
			value, fault = filepath.Abs(value)
		} else if !slices.Contains(Names(), value) {
			fault = fmt.Errorf("invalid --data-services %q: give some of %s, or files or directories of your own services, like /etc/cupola/services", value, strings.Join(Names(), ", "))
		}
		all, err = append(all, value), errors.Join(err, fault)
	}
	return all, err
}

// Load reads the files that --data-services names.
func Load(values []string) (o Offer) {
	for _, value := range values {
		if !isFile(value) {
			o.Names = append(o.Names, value)
			continue
		}
		files, err := servicefile.Find(value)
		if err != nil {
			o.refuse(value, err)
		}
		for _, file := range files {
			o.load(file)
		}
	}
	return o
}

func (o *Offer) load(path string) {
	f, err := CheckFile(path)
	if err == nil && indexOf(o.Files, f.Name) >= 0 {
		err = fmt.Errorf("%s: name: another file has the name %q, too", path, f.Name)
	}
	if err != nil {
		o.refuse(path, err)
		return
	}
	o.Files = append(o.Files, f)
	o.read = append(o.read, FileStatus{File: path, Service: f.Name, Version: f.Version})
}

func (o *Offer) refuse(path string, err error) {
	o.Faults = append(o.Faults, err)
	o.read = append(o.read, FileStatus{File: path, Fault: err.Error()})
}

// keepWrong goes on to offer what files that are wrong now said before: without a service, the platform would forget its plans, and who
// may use them.
func (o *Offer) keepWrong(before Offer) {
	for _, was := range before.read {
		n := slices.IndexFunc(o.read, func(f FileStatus) bool {
			return f.Fault != "" && (f.File == was.File || f.File == filepath.Dir(was.File))
		})
		if n < 0 || was.Service == "" || indexOf(o.Files, was.Service) >= 0 {
			continue
		}
		o.Files = append(o.Files, before.Files[indexOf(before.Files, was.Service)])
		if f := &o.read[n]; f.File == was.File {
			f.Service, f.Version = was.Service, was.Version
		} else { // its directory cannot be read
			was.Fault = ""
			o.read = append(o.read, was)
		}
	}
}

// offers reports whether a built-in service is offered: by its name, and no file replaces it.
func (o Offer) offers(name string) bool {
	return slices.Contains(o.Names, name) && indexOf(o.Files, name) < 0
}

func indexOf(files []*servicefile.File, service string) int {
	return slices.IndexFunc(files, func(f *servicefile.File) bool { return f.Name == service })
}

// CheckFile reads a service file to offer next to the built-in services, or instead of one that has a
// file, too.
func CheckFile(path string) (*servicefile.File, error) {
	f, err := servicefile.Read(path)
	if err == nil && slices.Contains(Names(), f.Name) && !isFileService(f.Name) {
		err = fmt.Errorf("%s: name: %q is a built-in service: give another name", path, f.Name)
	}
	return f, err
}

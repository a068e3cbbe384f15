// Package servicefile reads the files by which operators add their own services to the
// built-in service broker: an image, its ports, what bindings get, and commands.
package servicefile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"cupola/rootfs/reference"
)

// File describes a service. Instances keep the one that they were made with in the
// database, as JSON with the names of these fields.
type File struct {
	Name        string   `yaml:"name"`
	Description string   `yaml:"description"`
	DisplayName string   `yaml:"display_name"`
	Tags        []string `yaml:"tags"`
	// Version is the service's own: another one offers instances an upgrade to this file.
	Version string `yaml:"version"`

	Image    string    `yaml:"image"` // after Parse a reference with its scheme
	Registry *Registry `yaml:"registry"`
	Command  []string  `yaml:"command"` // instead of the image's entry point
	Args     []string  `yaml:"args"`    // instead of the image's
	User     string    `yaml:"user"`    // instead of the image's
	// Env and Credentials are templates, as Args are; see Vars.
	Env     map[string]string `yaml:"env"`
	Secrets []string          `yaml:"secrets"` // names of generated values
	Ports   []uint16          `yaml:"ports"`
	Volume  string            `yaml:"volume"` // where it is mounted; "": there is none
	Health  Health            `yaml:"health"`
	Plans   []Plan            `yaml:"plans"`

	Credentials map[string]any `yaml:"credentials"`

	// Bind, Unbind, Backup and Restore are programs of the shell, which run in the container
	// with its environment; "" for none.
	Bind    string `yaml:"bind"`
	Unbind  string `yaml:"unbind"`
	Backup  string `yaml:"backup"`
	Restore string `yaml:"restore"`
}

// Registry is what the image's registry asks for.
type Registry struct {
	Username string `yaml:"username"`
	Password string `yaml:"password"`
}

// Health is how it is seen that the server runs: by its first port, unless Port is another
// one, and by an answer 200 of Path, unless that is "".
type Health struct {
	Port uint16 `yaml:"port"`
	Path string `yaml:"path"`
}

// Plan is how large an instance is.
type Plan struct {
	Name        string `yaml:"name"`
	Description string `yaml:"description"`
	Memory      Size   `yaml:"memory"`
	Disk        Size   `yaml:"disk"`
}

// maxFile bounds a file, in bytes.
const maxFile = 64 << 10

// Read reads a file; errors name it, and the line and the field of what is wrong.
func Read(path string) (*File, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	return Parse(path, text)
}

// Find lists the files that a path means: itself, or those of a directory whose names end in
// .yml or .yaml, sorted.
func Find(path string) (files []string, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		return []string{path}, nil
	}
	entries, err := os.ReadDir(path)
	for _, e := range entries {
		if IsName(e.Name()) {
			files = append(files, filepath.Join(path, e.Name()))
		}
	}
	return files, err
}

// IsName reports whether a file's name is one of a service file.
func IsName(name string) bool {
	return slices.Contains([]string{".yml", ".yaml"}, filepath.Ext(name))
}

// IsStack reports whether the image is a stack of this machine.
func (f *File) IsStack() bool {
	scheme, _ := reference.SplitScheme(f.Image)
	return scheme == reference.SchemePreloaded
}

// HealthPort is the port that is asked whether the server runs.
func (f *File) HealthPort() uint16 {
	if f.Health.Port != 0 {
		return f.Health.Port
	}
	return f.Ports[0]
}

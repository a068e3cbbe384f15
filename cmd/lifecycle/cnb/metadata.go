package cnb

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
)

// metadata is the file config/metadata.toml in the layers' directory, by which the
// launcher knows the processes (platform.md: metadata.toml).
type metadata struct {
	Processes   []process `json:"processes"`
	Buildpacks  []usedBy  `json:"buildpacks"`
	Labels      []label   `json:"labels,omitempty"`
	DefaultType string    `json:"buildpack-default-process-type,omitempty"`
}

// usedBy is a buildpack that took part.
type usedBy struct {
	ID       string `json:"id"`
	Version  string `json:"version,omitempty"`
	API      string `json:"api"`
	Homepage string `json:"homepage,omitempty"`
}

// label is one that an image of the app would have.
type label struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// process is a process type.
type process struct {
	Type        string   `json:"type"`
	Command     words    `json:"command"`
	Args        []string `json:"args,omitempty"`
	Direct      bool     `json:"direct"` // without a shell
	Default     bool     `json:"default,omitempty"`
	BuildpackID string   `json:"buildpack-id,omitempty"`
	WorkingDir  string   `json:"working-dir,omitempty"`
}

// line is what Cloud Foundry takes for the command of a process.
func (p process) line() string {
	return strings.Join(append(append([]string{}, p.Command...), p.Args...), " ")
}

// words are a command: a list of strings or, in older APIs, one.
type words []string

// UnmarshalJSON takes both forms.
func (w *words) UnmarshalJSON(text []byte) error {
	var list []string
	if err := json.Unmarshal(text, &list); err == nil {
		*w = list
		return nil
	}
	var one string
	if err := json.Unmarshal(text, &one); err != nil {
		return fmt.Errorf("a command is neither a string nor a list of strings: %w", err)
	}
	*w = words{one}
	return nil
}

// metadataFile is where the metadata is.
func metadataFile(layers string) string { return filepath.Join(layers, "config", "metadata.toml") }

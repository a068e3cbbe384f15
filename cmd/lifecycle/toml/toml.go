// Package toml reads and writes TOML 1.0, the format of the files by which Cloud
// Native Buildpacks and their platform speak to each other. It reads untrusted
// files of a bounded size.
package toml

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
)

// maxFile is the largest file that is read, in bytes.
const maxFile = 8 << 20

// maxDepth bounds nested arrays and inline tables.
const maxDepth = 100

// Table is a table: its values are string, int64, float64, bool, Moment, []any and Table.
type Table = map[string]any

// Moment is a date or time, as it was written.
type Moment string

// Unmarshal decodes a document into v by v's json tags.
func Unmarshal(text []byte, v any) error {
	table, err := parse(text)
	if err != nil {
		return err
	}
	b, err := json.Marshal(table)
	if err != nil {
		return err // inf and nan
	}
	if err := json.Unmarshal(b, v); err != nil {
		if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return fmt.Errorf("%s is of the type %s; want %s", wrong.Field, wrong.Value, wrong.Type)
		}
		return err
	}
	return nil
}

// ReadFile decodes a file as Unmarshal does.
func ReadFile(path string, v any) error {
	text, err := read(path)
	if err != nil {
		return err
	}
	if err := Unmarshal(text, v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// ReadTable parses a file. Unlike ReadFile it keeps the type of every value.
func ReadTable(path string) (Table, error) {
	text, err := read(path)
	if err != nil {
		return nil, err
	}
	t, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

func read(path string) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > maxFile:
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxFile)
	}
	return os.ReadFile(path)
}

// WriteFile encodes v by its json tags into a file.
func WriteFile(path string, v any) error {
	text, err := marshal(v)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, text, 0o644)
}

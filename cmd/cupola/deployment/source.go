package deployment

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"

	"cupola/cmd/cupola/command"
	"cupola/server/bosh"
	"cupola/server/bosh/interpolate"
	"cupola/server/bosh/tree"
)

// sourceFlags are what a BOSH deployment is made of, by the bosh CLI's flags.
type sourceFlags struct {
	Manifest string   `help:"The deployment's manifest; - reads standard input." short:"f" required:"" placeholder:"FILE"`
	Ops      []string `help:"Apply an ops file; may be repeated." short:"o" sep:"none" placeholder:"FILE"`
	variableFlags
	VarsStore string `help:"Load variables from this YAML file, and generate there those that the manifest declares and that have no value." placeholder:"FILE"`
}

// variableFlags are values of variables, by the bosh CLI's flags.
type variableFlags struct {
	Var      []string `help:"Set a variable to a YAML value; may be repeated." short:"v" sep:"none" placeholder:"NAME=VALUE"`
	VarFile  []string `help:"Set a variable to a file's content; may be repeated." sep:"none" placeholder:"NAME=FILE"`
	VarsFile []string `help:"Load variables from a YAML file; may be repeated." short:"l" sep:"none" placeholder:"FILE"`
	VarsEnv  []string `help:"Load variables from environment variables PREFIX_name; may be repeated." sep:"none" placeholder:"PREFIX"`
}

// source reads all that the flags name.
func (f *sourceFlags) source(ctx context.Context) (s bosh.Source, err error) {
	if s.Manifest, err = readSource(ctx, f.Manifest); err != nil {
		return s, err
	}
	for _, path := range f.Ops {
		file, err := readSource(ctx, path)
		if err != nil {
			return s, err
		}
		s.Ops = append(s.Ops, file)
	}
	if s.Values, err = f.values(ctx); err != nil || f.VarsStore == "" {
		return s, err
	}
	stored, err := f.stored(ctx, s)
	s.Values = bosh.Merged(stored, s.Values)
	return s, err
}

// stored are the values of the store of variables. New ones are written to its
// file, which only its owner can read.
func (f *sourceFlags) stored(ctx context.Context, s bosh.Source) (interpolate.Values, error) {
	var old interpolate.Values
	file, err := readSource(ctx, f.VarsStore)
	switch {
	case err == nil:
		old, err = bosh.Values(file)
	case errors.Is(err, fs.ErrNotExist):
		err = nil
	}
	if err != nil {
		return nil, err
	}
	all, err := s.Generated(ctx, old)
	if err != nil || len(all) == len(old) {
		return all, err
	}
	n, err := tree.Of(map[string]any(all))
	if err != nil {
		return nil, err
	}
	text, err := tree.Write(n)
	if err != nil {
		return nil, err
	}
	_, err = command.WriteFile(f.VarsStore, func(w io.Writer) error {
		_, err := w.Write(text)
		return err
	})
	return all, err
}

// values are those of all flags; as in the bosh CLI, what is said of one
// variable wins over files, and files win over the environment.
func (f *variableFlags) values(ctx context.Context) (interpolate.Values, error) {
	all := interpolate.Values{}
	for _, prefix := range f.VarsEnv {
		values, err := bosh.FromEnvironment(prefix, os.Environ())
		if err != nil {
			return nil, err
		}
		all = bosh.Merged(all, values)
	}
	for _, path := range f.VarsFile {
		file, err := readSource(ctx, path)
		if err != nil {
			return nil, err
		}
		values, err := bosh.Values(file)
		if err != nil {
			return nil, err
		}
		all = bosh.Merged(all, values)
	}
	for _, assignment := range f.VarFile {
		name, path, err := bosh.Assignment(assignment, "path")
		if err != nil {
			return nil, err
		}
		file, err := readSource(ctx, path)
		if err != nil {
			return nil, err
		}
		all[name] = string(file.Text)
	}
	for _, assignment := range f.Var {
		name, value, err := bosh.Assigned(assignment)
		if err != nil {
			return nil, err
		}
		all[name] = value
	}
	return bosh.Nested(all)
}

// readSource reads a file, as far as any is read.
func readSource(ctx context.Context, path string) (bosh.File, error) {
	in := io.Reader(os.Stdin)
	if path != "-" {
		f, err := os.Open(path)
		if err != nil {
			return bosh.File{}, err
		}
		defer f.Close()
		in = f
	}
	type result struct {
		text []byte
		err  error
	}
	done := make(chan result, 1)
	go func() { // who types in a terminal may think better of it
		text, err := io.ReadAll(io.LimitReader(in, tree.MaxBytes+1))
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return bosh.File{Name: path, Text: r.text}, r.err
	case <-ctx.Done():
		return bosh.File{}, ctx.Err()
	}
}

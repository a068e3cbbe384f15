package release

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"

	"cupola/runtime/pattern"
)

// jobsDir is where an image keeps its jobs, relative to its root.
const jobsDir = "var/vcap/jobs-src"

var nameRule = pattern.Lazy(`^[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}$`)

// checkName reports whether a job may be called so: the name becomes a part of
// paths.
func checkName(name string) error {
	if !nameRule().MatchString(name) {
		return fmt.Errorf("job name %q is not made of letters, digits, _, . and -", name)
	}
	return nil
}

// Read reads a job from the root of a release image. That root has to refuse
// paths that lead out of it, as the FS of an os.Root does.
func Read(root fs.FS, name string) (Job, error) {
	if err := checkName(name); err != nil {
		return Job{}, err
	}
	text, err := readSpec(root, name)
	if err != nil {
		return Job{}, err
	}
	job, err := ParseSpec(name, text)
	if err != nil {
		return Job{}, err
	}
	total := 0
	for i := range job.Templates {
		t := &job.Templates[i]
		if err := t.read(root, name); err != nil {
			return Job{}, fmt.Errorf("job %q: template %q: %w", name, t.Source, err)
		}
		if total += len(t.Content); total > maxJobBytes {
			return Job{}, fmt.Errorf("job %q: the templates have more than %d bytes", name, maxJobBytes)
		}
	}
	job.Monit, _, err = readFile(root, path.Join(jobsDir, name, "monit"), maxTemplateBytes)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Job{}, fmt.Errorf("job %q: monit: %w", name, err)
	}
	return job, nil
}

// readSpec takes job.MF, which built releases have, before spec.
func readSpec(root fs.FS, name string) ([]byte, error) {
	for _, file := range []string{"job.MF", "spec"} {
		text, _, err := readFile(root, path.Join(jobsDir, name, file), maxSpecBytes)
		if !errors.Is(err, fs.ErrNotExist) {
			if err != nil {
				err = fmt.Errorf("job %q: %s: %w", name, file, err)
			}
			return text, err
		}
	}
	has := "it has none"
	if names := names(root); len(names) > 0 {
		has = "it has " + strings.Join(names, ", ")
	}
	return nil, fmt.Errorf("job %q is not in the release image: %s", name, has)
}

// names lists the jobs of a release image.
func names(root fs.FS) []string {
	entries, err := fs.ReadDir(root, jobsDir)
	if err != nil {
		return nil
	}
	var names []string
	for _, e := range entries {
		if e.IsDir() && checkName(e.Name()) == nil {
			names = append(names, e.Name())
		}
	}
	return slices.Clip(names)
}

// read fills in what lies in the file. What goes to bin is a program; whatever
// else is only if its template is.
func (t *Template) read(root fs.FS, job string) error {
	content, mode, err := readFile(root, path.Join(jobsDir, job, "templates", t.Source), maxTemplateBytes)
	t.Content, t.Mode = content, 0o640
	switch {
	case strings.HasPrefix(t.Destination, "bin/"):
		t.Mode = 0o755
	case mode&0o111 != 0:
		t.Mode = 0o750
	}
	return err
}

func readFile(root fs.FS, name string, most int64) ([]byte, fs.FileMode, error) {
	// To open something that is not a file might never return.
	info, err := fs.Stat(root, name)
	if err != nil {
		return nil, 0, cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, 0, errors.New("is not a regular file")
	}
	f, err := root.Open(name)
	if err != nil {
		return nil, 0, cause(err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, most+1))
	if err != nil {
		return nil, 0, cause(err)
	}
	if int64(len(content)) > most {
		return nil, 0, fmt.Errorf("has more than %d bytes", most)
	}
	return content, info.Mode(), nil
}

// cause leaves out the path, which the caller names.
func cause(err error) error {
	var at *fs.PathError
	if errors.As(err, &at) {
		return at.Err
	}
	return err
}

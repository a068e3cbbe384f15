package deployment

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/pkg/sftp"

	"cupola/cmd/cupola/command"
)

// transfer copies files by sftp, as scp does.
type transfer struct {
	e         *command.Env
	files     *sftp.Client
	recursive bool
}

// get copies a remote file or directory to target, or into it if that is a directory.
func (t *transfer) get(source, target string) error {
	info, err := t.files.Stat(source)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	if local, err := os.Stat(target); err == nil && local.IsDir() {
		real, err := t.files.RealPath(source)
		if err != nil {
			return fmt.Errorf("%s: %w", source, err)
		}
		if target, err = below(target, path.Base(real)); err != nil {
			return err
		}
	}
	if strings.Contains(target, "/") {
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
	}
	return t.getOne(source, target, info)
}

// below is a path in a directory; the name is a stranger's.
func below(dir, name string) (string, error) {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\x00") {
		return "", fmt.Errorf("unexpected file name %.40q", name)
	}
	return filepath.Join(dir, name), nil
}

func (t *transfer) getOne(source, target string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return t.getFile(source, target, info)
	case !info.IsDir():
		fmt.Fprintf(t.e.Err, "%s: skipped: neither a file nor a directory\n", command.Printable(source))
		return nil
	case !t.recursive:
		return fmt.Errorf("%s is a directory: give -r", source)
	}
	if err := os.MkdirAll(target, 0o755); err != nil {
		return err
	}
	entries, err := t.files.ReadDir(source)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	for _, entry := range entries {
		to, err := below(target, entry.Name())
		if err == nil {
			err = t.getOne(path.Join(source, entry.Name()), to, entry)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) getFile(source, target string, info fs.FileInfo) error {
	from, err := t.files.Open(source)
	if err != nil {
		return fmt.Errorf("%s: %w", source, err)
	}
	defer from.Close()
	to, err := os.OpenFile(target, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, info.Mode().Perm()|0o200)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close()
		return fmt.Errorf("%s: %w", source, err)
	}
	return to.Close()
}

// put copies a local file or directory to target, or into it if that is a directory.
func (t *transfer) put(source, target string) error {
	info, err := os.Stat(source)
	if err != nil {
		return err
	}
	if remote, err := t.files.Stat(target); err == nil && remote.IsDir() {
		absolute, err := filepath.Abs(source)
		if err != nil {
			return err
		}
		target = path.Join(target, filepath.Base(absolute))
	}
	return t.putOne(source, target, info)
}

func (t *transfer) putOne(source, target string, info fs.FileInfo) error {
	switch {
	case info.Mode().IsRegular():
		return t.putFile(source, target, info)
	case !info.IsDir():
		fmt.Fprintf(t.e.Err, "%s: skipped: neither a file nor a directory\n", source)
		return nil
	case !t.recursive:
		return fmt.Errorf("%s is a directory: give -r", source)
	}
	if err := t.files.MkdirAll(target); err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	entries, err := os.ReadDir(source)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil {
			err = t.putOne(filepath.Join(source, entry.Name()), path.Join(target, entry.Name()), info)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (t *transfer) putFile(source, target string, info fs.FileInfo) error {
	from, err := os.Open(source)
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := t.files.Create(target)
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	_, err = io.Copy(to, from)
	if err == nil {
		err = to.Chmod(info.Mode().Perm())
	}
	if closed := to.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("%s: %w", target, err)
	}
	return nil
}

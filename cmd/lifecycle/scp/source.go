package scp

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// give sends the requested files.
func (c *copier) give() error {
	if _, err := c.answer(); err != nil {
		return err
	}
	for _, path := range c.paths {
		if err := c.giveOne(path); err != nil {
			return err
		}
	}
	return nil
}

func (c *copier) giveOne(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		c.complain(err)
		return nil
	case info.IsDir() && c.recursive:
		return c.giveDirectory(path, info)
	case !info.Mode().IsRegular():
		c.complain(errors.New(path + ": not a regular file"))
		return nil
	}
	return c.giveFile(path, info)
}

// announce sends a message, and its times before it, and reports whether the
// other end wants what it announces.
func (c *copier) announce(m message, info os.FileInfo) (wanted bool, err error) {
	lines := []string{m.String()}
	if c.preserve {
		lines = []string{times{info.ModTime(), info.ModTime()}.String(), m.String()}
	}
	for _, line := range lines {
		if _, err := io.WriteString(c.out, line+"\n"); err != nil {
			return false, err
		}
		if refused, err := c.answer(); refused || err != nil {
			return false, err
		}
	}
	return true, nil
}

func (c *copier) giveDirectory(path string, info os.FileInfo) error {
	entries, err := os.ReadDir(path)
	if err != nil {
		c.complain(err)
		return nil
	}
	wanted, err := c.announce(message{kind: 'D', mode: info.Mode().Perm(), name: base(path)}, info)
	if err != nil || !wanted {
		return err
	}
	for _, e := range entries {
		if err := c.giveOne(filepath.Join(path, e.Name())); err != nil {
			return err
		}
	}
	if _, err := io.WriteString(c.out, "E\n"); err != nil {
		return err
	}
	_, err = c.answer()
	return err
}

func (c *copier) giveFile(path string, info os.FileInfo) error {
	f, err := os.Open(path)
	if err != nil {
		c.complain(err)
		return nil
	}
	defer f.Close()
	wanted, err := c.announce(message{kind: 'C', mode: info.Mode().Perm(), size: info.Size(), name: base(path)}, info)
	if err != nil || !wanted {
		return err
	}
	sent, err := io.CopyN(c.out, f, info.Size())
	if err != nil {
		// As many bytes as were announced have to follow.
		if _, err := io.CopyN(c.out, zeros{}, info.Size()-sent); err != nil {
			return err
		}
		c.complain(fmt.Errorf("%s: %w", path, err))
	} else if err := c.accept(); err != nil {
		return err
	}
	_, err = c.answer()
	return err
}

// base is the name a path is announced by; that of "." is its directory's.
func base(path string) string {
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	return filepath.Base(path)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
